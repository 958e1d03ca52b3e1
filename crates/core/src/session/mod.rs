//! What a session may do next: start, be given out, be evicted, be told as restarted.
