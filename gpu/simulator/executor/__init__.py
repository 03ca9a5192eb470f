"""The lockstep executor: runs the IR over all lanes together and notifies observers."""
