"""The machines of a worker, and the rules that concern one worker alone."""
