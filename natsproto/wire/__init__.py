"""The wire protocol: frames, headers, subjects, and the parser of both peers."""
