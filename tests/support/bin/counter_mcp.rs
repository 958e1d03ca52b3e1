//! The counter over stdio: writes its diary into the folder named by `COUNTER_DIARY`.

fn main() -> std::process::ExitCode {
    caribou_tests::counter_server::serve_counter()
}
