//! The arguments of `roundtable picture`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::FlagArg;
use crate::event::BoundaryId;

/// Arguments of `roundtable picture`.
#[derive(Debug, Clone, Args)]
pub struct PictureArgs {
    /// A scenario (a file, or a name: see `roundtable scenarios`), which is played by its script in
    /// simulated time; a kept run (an id, the beginning of one, last, last~2); or a file of JSON
    /// lines
    #[arg(value_name = "SCENARIO|RUN|FILE.jsonl[.gz]")]
    pub scenario_or_run: String,
    /// The moment: a boundary, before it is passed (round:2; `roundtable fork RUN` lists them), a
    /// time of the run's clock (4.5s or 00:04.5), or end
    #[arg(long, value_name = "BOUNDARY|TIME|end", default_value = "end", value_parser = Moment::parse)]
    pub at: Moment,
    /// Columns and rows of the screen
    #[arg(long, value_name = "COLSxROWS", default_value = "120x36", value_parser = PictureSize::parse)]
    pub size: PictureSize,
    /// Print the screen as text, without colours, instead of an SVG
    #[arg(long)]
    pub text: bool,
    /// Write to this file, which must not exist yet, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Override a field of the scenario, as `run --set` does
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Switch a flag of the scenario, as `run --flag` does
    #[arg(long = "flag", value_name = "NAME=on|off[@BOUNDARY]", value_parser = FlagArg::parse)]
    pub flags: Vec<FlagArg>,
    /// Seed of the random numbers of the scenario's run
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
}

/// A moment of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// Its end.
    End,
    /// A time of the run's clock, which stops in pauses.
    Time(Duration),
    /// Before this boundary, whether or not the run has it.
    Boundary(BoundaryId),
}

impl Moment {
    fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => Err("give a boundary such as round:2, a time such as 4.5s, or end".to_owned()),
            "end" => Ok(Self::End),
            text if text.starts_with(|c: char| c.is_ascii_digit()) => {
                time(text).map(Self::Time).ok_or_else(|| {
                    format!("`{text}` is not a time: use 250ms, 4.5s, 2m, 00:04.5 or 1:02:03")
                })
            }
            text => Ok(Self::Boundary(BoundaryId::new(text))),
        }
    }
}

/// Parses a time such as `4.5s`, or as the dashboard shows it: `00:04.5`.
fn time(text: &str) -> Option<Duration> {
    if !text.contains(':') {
        return super::duration(text).ok();
    }
    let parts: Vec<&str> = text.split(':').collect();
    let (seconds, larger) = parts.split_last()?;
    let is_number = |it: &&str| !it.is_empty() && it.bytes().all(|c| c.is_ascii_digit());
    if larger.len() > 2 || !larger.iter().all(|it| is_number(it) && it.len() < 7) {
        return None;
    }
    let minutes = larger.iter().try_fold(0, |sum, it| Some(sum * 60 + it.parse::<u64>().ok()?))?;
    let seconds = super::duration(&format!("{seconds}s")).ok()?;
    (seconds < Duration::from_secs(60)).then(|| Duration::from_secs(minutes * 60) + seconds)
}

/// Columns and rows of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureSize {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

/// Most columns or rows of a picture.
const MAX_CELLS: u16 = 1_000;

impl PictureSize {
    fn parse(text: &str) -> Result<Self, String> {
        let number = |it: &str| it.parse().ok().filter(|it| (1..=MAX_CELLS).contains(it));
        let parts = text.split_once('x');
        let size = parts.and_then(|(cols, rows)| {
            Some(Self { cols: number(cols.trim())?, rows: number(rows.trim())? })
        });
        size.ok_or_else(|| format!("use COLSxROWS, such as 120x36, up to {MAX_CELLS} each"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_boundary_or_a_time_or_the_end() {
        let time = |ms| Ok(Moment::Time(Duration::from_millis(ms)));
        for (text, ms) in [
            ("4.5s", 4_500),
            ("250ms", 250),
            ("2m", 120_000),
            ("00:04.5", 4_500),
            ("01:02", 62_000),
            ("1:02:03.25", 3_723_250),
            ("0:00", 0),
        ] {
            assert_eq!(Moment::parse(text), time(ms), "{text}");
        }
        assert_eq!(Moment::parse("end"), Ok(Moment::End));
        let boundary = BoundaryId::new("round:2");
        assert_eq!(Moment::parse("round:2"), Ok(Moment::Boundary(boundary)));
        for wrong in
            ["", " ", "4", "4x", "1:2:3:4", "00:61", "1::2", "1:-2", "1:2s", "99999999999999:00"]
        {
            assert!(Moment::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_size_is_bounded() {
        assert_eq!(PictureSize::parse("80x24"), Ok(PictureSize { cols: 80, rows: 24 }));
        assert!(PictureSize::parse("1x1000").is_ok());
        for wrong in ["", "80", "80x", "x24", "0x24", "80x0", "1001x24", "80x24x2", "-1x2", "9e9x1"]
        {
            assert!(PictureSize::parse(wrong).is_err(), "{wrong}");
        }
    }
}
