//! The scriptable MCP server over stdio: reads its script from the file named by `FAKE_SCRIPT`, tells what it saw in
//! the one named by `FAKE_LOG`.

fn main() -> std::process::ExitCode {
    caribou_tests::fake::serve_stdio()
}
