"""What is measured, each in a process of its own: `worker` starts one of the modules beside it."""
