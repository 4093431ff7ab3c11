"""Where a request is handled: here, or by the sidecar that coordinates its group."""
