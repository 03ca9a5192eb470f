"""The timing model beside a GPU: what both are asked, what the GPU answers, how far the model is from that."""
