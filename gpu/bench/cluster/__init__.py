"""The benchmark of several devices: each pattern on one worker of a cluster and on all, data lying on devices."""
