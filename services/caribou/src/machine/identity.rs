//! Which machine this is, for others to tell whether they are on the same one.
//!
//! Named by the running kernel and by the processes that can be seen from here: two containers of one machine are told
//! apart unless they share their processes. Whether they share their files too shows only when one opens a file of the
//! other. A machine that was started anew is another one.

use std::fs;

/// The name of this machine; `None` = it cannot be told, so nobody proves anything about us.
pub(super) fn host_id() -> Option<String> {
    let kernel = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let processes = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", kernel.trim(), processes.to_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_name() {
        let name = host_id().unwrap();
        assert!(name.len() > 40 && name.contains(" pid:["), "{name}");
        assert_eq!(host_id(), Some(name));
    }
}
