//! A whole run of the grid: its cases on all cores, and its results as JSON.

use muse_program::parallel::in_parallel;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Case, Figures, Plan, ViewFigures};
use crate::arena::Switches;
use crate::recording::Recording;

/// A run and its results: the same bytes every time for the same plan, recordings and seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Of this text; 1.
    pub format: u32,
    /// The circumstances of the run.
    pub about: About,
    /// In the order of the plan.
    pub cases: Vec<CaseResult>,
}

/// The circumstances of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Random seed.
    pub seed: u64,
    /// Of each case that counted.
    pub seconds: u32,
    /// Of players in each.
    pub recordings: Vec<String>,
    /// The network that packets went over, if not a virtual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
}

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// Which.
    #[serde(flatten)]
    pub case: Case,
    /// The measurements.
    pub figures: Figures,
    /// The other ways to show others, where everything is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub views: Option<Vec<ViewFigures>>,
    /// The distance over time: the mean of the last second, twice a second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<f64>,
    /// The distance of one shown player on one client in every tick of the first eight seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<f64>,
}

/// Why a text is no run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// It is no JSON of a run.
    #[error("not the JSON of a run of the laboratory: {0}")]
    Json(#[from] serde_json::Error),
    /// It is of another version.
    #[error("the run is written in format {0}, and this program reads 1")]
    Format(u32),
}

impl Run {
    /// Runs all cases of a plan on so many threads. The outcome does not depend on how many.
    pub fn make(plan: &Plan, recordings: &[Recording], seed: u64, threads: usize) -> Self {
        let cases = plan.cases();
        let results = in_parallel(cases.len(), threads, |number| {
            cases[number].run(recordings, seed, plan.seconds())
        });
        Self::of(plan, recordings, seed, results)
    }

    /// The results of a plan's cases.
    pub fn of(plan: &Plan, recordings: &[Recording], seed: u64, cases: Vec<CaseResult>) -> Self {
        Self {
            format: FORMAT,
            about: About {
                seed,
                seconds: plan.seconds(),
                recordings: recordings.iter().map(|r| r.name().to_owned()).collect(),
                over: None,
            },
            cases,
        }
    }

    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, RunError> {
        let run: Self = serde_json::from_str(text)?;
        match run.format {
            FORMAT => Ok(run),
            other => Err(RunError::Format(other)),
        }
    }

    /// Writes it, a line for each case, so that differences read well.
    pub fn emit(&self) -> String {
        let about = written(&self.about);
        let cases: Vec<String> = self.cases.iter().map(written).collect();
        let (format, cases) = (self.format, cases.join(",\n"));
        format!("{{\"format\":{format},\"about\":{about},\"cases\":[\n{cases}\n]}}\n")
    }

    /// Without what happened over time: what is kept for review.
    pub fn brief(mut self) -> Self {
        for case in &mut self.cases {
            case.course.clear();
            case.trace.clear();
        }
        self
    }

    /// The result of a case.
    pub fn case(&self, case: Case) -> Option<&CaseResult> {
        self.cases.iter().find(|result| result.case == case)
    }

    /// The cases with these switches.
    pub fn with(&self, switches: Switches) -> impl Iterator<Item = &CaseResult> {
        self.cases
            .iter()
            .filter(move |result| result.case.switches == switches)
    }
}

fn written(part: &impl Serialize) -> String {
    serde_json::to_string(part).expect("numbers, texts and lists can be written")
}

const FORMAT: u32 = 1;
