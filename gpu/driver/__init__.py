"""What stands below an interface of CUDA's: the device's memory by flat addresses, launches, what is taken down."""
