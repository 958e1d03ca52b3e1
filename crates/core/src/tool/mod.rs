//! What a tool is called and which tools are shown.
