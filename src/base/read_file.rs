//! Opens and reads regular files only, up to a size cap. A pipe without a writer cannot block the
//! program, and a device cannot fill its memory.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// How long a pipe may stay silent before reading it fails.
pub const SILENCE: Duration = Duration::from_secs(10);

/// Bytes per read of a pipe.
const PIECE: usize = 64 << 10;

/// What to do if the last part of a path is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Open the file that it points to.
    Followed,
    /// Fail.
    Refused,
}

/// Opens a regular file. Checks the path before opening it, because opening a device can have
/// effects, and checks the open file again, because the path may have changed. Neither step blocks.
///
/// # Errors
/// Any error of the system. If it is not a regular file: `InvalidInput` (`IsADirectory` for a
/// folder), with a sentence that says what it is.
pub fn open_file(path: &Path, options: &mut OpenOptions, links: Links) -> io::Result<File> {
    let found = match links {
        Links::Followed => path.metadata(),
        Links::Refused => path.symlink_metadata(),
    };
    match found {
        Ok(found) => check(&found)?,
        // The options may create it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        flags.set(OFlags::NOFOLLOW, links == Links::Refused);
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file as a whole.
///
/// # Errors
/// As [`open_file`]; `FileTooLarge` if it has more than `cap` bytes.
pub fn read_file(path: &Path, cap: u64) -> io::Result<Vec<u8>> {
    read_within(open_file(path, OpenOptions::new().read(true), Links::Followed)?, cap)
}

/// Reads from an open reader to its end.
///
/// # Errors
/// Any error of the reader; `FileTooLarge` if it has more than `cap` bytes.
pub fn read_within(from: impl Read, cap: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(cap + 1).read_to_end(&mut bytes)?;
    check_size(&bytes, cap)?;
    Ok(bytes)
}

/// Whether a path is a pipe: a named one, or that of a shell's `<(command)`.
pub fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| kind(&found) == PIPE)
}

/// Reads a pipe to its end, on a thread of its own. On a timeout that thread is left behind,
/// because a read from a pipe cannot be cancelled.
///
/// # Errors
/// Any error of the system; `TimedOut` if nothing arrives for `silence`; `FileTooLarge` if more
/// than `cap` bytes arrive.
pub fn read_pipe(path: &Path, cap: u64, silence: Duration) -> io::Result<Vec<u8>> {
    let (send, pieces) = mpsc::sync_channel(1);
    let from = path.to_owned();
    std::thread::spawn(move || {
        let mut file = match File::open(from) {
            Ok(file) => file,
            Err(error) => return drop(send.send(Err(error))),
        };
        loop {
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece);
            let last = !matches!(read, Ok(1..));
            let piece = read.map(|read| {
                piece.truncate(read);
                piece
            });
            if send.send(piece).is_err() || last {
                return;
            }
        }
    });
    let mut bytes = Vec::new();
    loop {
        match pieces.recv_timeout(silence) {
            Ok(piece) => {
                let piece = piece?;
                if piece.is_empty() {
                    return Ok(bytes);
                }
                bytes.extend_from_slice(&piece);
                check_size(&bytes, cap)?;
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(bytes),
            Err(RecvTimeoutError::Timeout) => {
                let waited = silence.as_secs_f64();
                let text =
                    format!("no data from this pipe for {waited} s: is a program writing to it?");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
        }
    }
}

fn check_size(bytes: &[u8], cap: u64) -> io::Result<()> {
    if bytes.len() as u64 > cap {
        let text = format!("it has more than {cap} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(())
}

const PIPE: &str = "a pipe";

fn check(found: &Metadata) -> io::Result<()> {
    let error = match kind(found) {
        "" => return Ok(()),
        folder @ "a folder" => (io::ErrorKind::IsADirectory, folder),
        other => (io::ErrorKind::InvalidInput, other),
    };
    Err(io::Error::new(error.0, format!("it is {}, not a regular file", error.1)))
}

/// What kind of file it is, in words; empty for a regular file.
fn kind(found: &Metadata) -> &'static str {
    let what = found.file_type();
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if what.is_fifo() {
            return PIPE;
        }
        if what.is_socket() {
            return "a socket";
        }
        if what.is_char_device() || what.is_block_device() {
            return "a device";
        }
    }
    match () {
        () if what.is_file() => "",
        () if what.is_dir() => "a folder",
        () if what.is_symlink() => "a symbolic link",
        () => "something else",
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use super::*;
    use crate::support::pipe::make_pipe;

    fn pipe(folder: &Path) -> PathBuf {
        let path = folder.join("pipe");
        make_pipe(&path);
        path
    }

    #[test]
    fn opens_only_regular_files_without_blocking() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = pipe(folder.path());
        let says = |path: &Path| read_file(path, 10).expect_err("refused").to_string();
        assert_eq!(says(&pipe), "it is a pipe, not a regular file");
        assert_eq!(says(Path::new("/dev/zero")), "it is a device, not a regular file");
        assert_eq!(says(folder.path()), "it is a folder, not a regular file");
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        let error = open_file(&pipe, &mut options, Links::Followed).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);

        let file = folder.path().join("file");
        std::fs::write(&file, "0123456789").expect("written");
        assert_eq!(read_file(&file, 10).expect("reads"), b"0123456789");
        let error = read_file(&file, 9).expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        assert_eq!(read_file(&link, 10).expect("reads").len(), 10);
        let error = open_file(&link, OpenOptions::new().read(true), Links::Refused);
        assert!(error.expect_err("refused").to_string().contains("a symbolic link"));
    }

    #[test]
    fn reads_pipe_or_times_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = pipe(folder.path());
        assert!(is_pipe(&path) && !is_pipe(folder.path()));
        let error = read_pipe(&path, 10, Duration::from_millis(20)).expect_err("silent");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // The thread that was left behind still waits to open the old pipe, so this uses a new one.
        std::fs::remove_file(&path).expect("removed");
        let path = super::tests::pipe(folder.path());
        let to = path.clone();
        let writer = std::thread::spawn(move || {
            let mut pipe = OpenOptions::new().write(true).open(to).expect("a reader");
            pipe.write_all(b"title").expect("written");
        });
        assert_eq!(read_pipe(&path, 10, SILENCE).expect("reads"), b"title");
        writer.join().expect("written");
    }
}
