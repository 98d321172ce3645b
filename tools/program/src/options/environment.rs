//! Options from the environment: `MUSE_MASTER_DRAIN_SECONDS` is `--drain-seconds` of `muse master`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use clap::Command;

use super::tree::{self, Kind, Setting};
use super::{Found, Origin};

/// Reads the variables of `environment` that set options of `command` and its subcommands: what they set, and all that is wrong with them.
pub(super) fn read(
    environment: &[(OsString, OsString)],
    command: &Command,
    reserved: &[&str],
) -> (Vec<Found>, Vec<String>) {
    let program = command.get_name();
    let mut options: BTreeMap<String, (Vec<String>, Setting<'_>)> = BTreeMap::new();
    tree::walk(command, &mut |path, setting| {
        let owned = path.iter().map(|&it| it.to_owned()).collect();
        let variable = tree::variable(program, path, setting.name);
        options.insert(variable, (owned, setting));
    });
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for (variable, value) in environment {
        let Some(variable) = variable.to_str() else {
            continue;
        };
        let is_other = reserved.contains(&variable) || is_of_a_service(variable, value);
        if is_other || value.is_empty() {
            continue;
        }
        match options.get(variable) {
            Some((path, setting)) => match values(*setting, value) {
                Ok(values) => found.push(Found {
                    path: path.clone(),
                    name: setting.name.to_owned(),
                    values,
                    origin: Origin::Environment(variable.to_owned()),
                }),
                Err(fault) => faults.push(format!("{variable} in the environment: {fault}")),
            },
            None => faults.extend(unknown(variable, command, &options)),
        }
    }
    (found, faults)
}

fn values(setting: Setting<'_>, value: &OsStr) -> Result<Vec<OsString>, String> {
    if setting.kind() == Kind::Flag {
        return match value.to_str() {
            Some("true") => Ok(vec![OsString::new()]),
            Some("false") => Ok(Vec::new()),
            _ => Err("it must be true or false".to_owned()),
        };
    }
    let values: Vec<OsString> = match (setting.kind(), value.to_str()) {
        (Kind::List, Some(list)) => list.split(',').map(|it| it.trim().into()).collect(),
        _ => vec![value.to_owned()],
    };
    match values.iter().find_map(|value| setting.fault(value)) {
        Some(fault) => Err(fault),
        None => Ok(values),
    }
}

/// Says what is wrong with a variable that no option has: if it begins like those of a command, or is named after an option without its command.
fn unknown(
    variable: &str,
    command: &Command,
    options: &BTreeMap<String, (Vec<String>, Setting<'_>)>,
) -> Option<String> {
    let program = command.get_name();
    let of_a_command = tree::tables(command).any(|table| {
        let prefix = tree::variable(program, &[table.get_name()], "");
        variable.starts_with(&prefix) && !tree::takes_anything(table)
    });
    let shortened = |(path, setting): &(Vec<String>, Setting<'_>)| {
        !path.is_empty() && tree::variable(program, NO_PATH, setting.name) == variable
    };
    let meant: Vec<&str> = options
        .iter()
        .filter(|(_, option)| shortened(option))
        .map(|(variable, _)| variable.as_str())
        .collect();
    let mut fault = format!("{variable} in the environment: no option has this name");
    if !meant.is_empty() {
        fault += &format!("; is {} meant?", meant.join(" or "));
    } else if !of_a_command {
        return None;
    } else if let Some(nearest) = tree::nearest(variable, options.keys().cloned()) {
        fault += &format!("; is {nearest} meant?");
    }
    Some(fault)
}

/// True for the variables that Kubernetes sets for a service of the same name, such as MUSE_MASTER_SERVICE_HOST,
/// MUSE_MASTER_PORT_7777_TCP_ADDR, or MUSE_MASTER_PORT with a URL in it.
fn is_of_a_service(variable: &str, value: &OsStr) -> bool {
    if variable.ends_with("_SERVICE_HOST") || variable.contains("_SERVICE_PORT") {
        return true;
    }
    if variable.ends_with("_PORT") && value.to_string_lossy().contains("://") {
        return true;
    }
    variable.split_once("_PORT").is_some_and(|(_, rest)| {
        let mut words = rest.split('_').skip(1);
        let port = words.next();
        let is_port = port.is_some_and(|it| it.parse::<u16>().is_ok());
        is_port && matches!(words.next(), Some("TCP" | "UDP" | "SCTP"))
    })
}

const NO_PATH: &[&str] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_services_are_told_from_options() {
        for (variable, value) in [
            ("MUSE_MASTER_SERVICE_HOST", "10.0.0.1"),
            ("MUSE_MASTER_SERVICE_PORT", "7777"),
            ("MUSE_MASTER_SERVICE_PORT_HTTP", "7777"),
            ("MUSE_MASTER_PORT", "tcp://10.0.0.1:7777"),
            ("MUSE_MASTER_PORT_7777_TCP", "tcp://10.0.0.1:7777"),
            ("MUSE_MASTER_PORT_7777_TCP_ADDR", "10.0.0.1"),
        ] {
            assert!(is_of_a_service(variable, value.as_ref()), "{variable}");
        }
        for (variable, value) in [
            ("MUSE_UP_PORT", "8080"),
            ("MUSE_UP_RELAY_PORT", "7788"),
            ("MUSE_RELAY_WEB_TRANSPORT_PORT", "7789"),
            ("MUSE_BOTS_MASTER", "http://10.0.0.1:7777"),
        ] {
            assert!(!is_of_a_service(variable, value.as_ref()), "{variable}");
        }
    }
}
