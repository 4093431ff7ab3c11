"""Routing of requests about groups: handled here, or by the sidecar that coordinates the group."""
