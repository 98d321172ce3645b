//! Files that only their owner may read.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Options for a file that is made readable by its owner alone.
pub(super) fn open_private() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there is no mode to set"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
pub(super) fn refuse_if_others_can_read(file: &File, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let mode = file.metadata()?.permissions().mode();
    if mode & 0o077 != 0 {
        let path = path.display();
        let message = format!(
            "others can read this file; run `chmod 600 {path}`, or delete it to get a new one"
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn refuse_if_others_can_read(_: &File, _: &Path) -> io::Result<()> {
    // The folder's access rights apply; there is no mode to look at.
    Ok(())
}
