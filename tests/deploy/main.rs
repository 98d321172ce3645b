//! The files in `deploy/`: manifests that can be read, that fit together, and whose options the binary has.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use yaml_rust2::{Yaml, YamlLoader};

#[test]
fn the_manifests_hold_what_a_cluster_needs() {
    let kinds: Vec<String> = manifests().iter().map(|it| text(&it["kind"])).collect();
    let needed = [
        "Deployment",
        "Fleet",
        "FleetAutoscaler",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    ];
    for kind in needed {
        assert!(kinds.iter().any(|it| it == kind), "no {kind} in {kinds:?}");
    }
    let scaler = only("FleetAutoscaler");
    let fleet = only("Fleet");
    assert_eq!(scaler["spec"]["fleetName"], fleet["metadata"]["name"]);
    for manifest in manifests() {
        let namespace = text(&manifest["metadata"]["namespace"]);
        let expected = if manifest["kind"] == Yaml::String("Namespace".to_owned()) {
            ""
        } else {
            "muse"
        };
        assert_eq!(namespace, expected, "{manifest:?}");
    }
}

#[test]
fn the_binary_has_every_option_that_a_manifest_gives_it() {
    for container in [container(&only("Deployment")), game_container()] {
        let arguments = texts(&container["args"]);
        let (command, options) = arguments.split_first().expect("a command");
        let help = help(command);
        for option in options {
            let (name, _) = option.split_once('=').unwrap_or((option.as_str(), ""));
            // The options of a cluster exist if the binary was built with that feature.
            let cluster = name.starts_with("--agones") || name.starts_with("--nats");
            let built = cfg!(feature = "agones") || !cluster;
            assert!(!built || help.contains(name), "{command} has no {name}");
        }
    }
}

#[test]
fn masters_and_game_servers_agree() {
    let master = container(&only("Deployment"));
    let options = texts(&master["args"]);
    let fleet = only("Fleet");
    let labels = &fleet["spec"]["template"]["metadata"]["labels"];
    let option = |name: &str| options.iter().find_map(|it| it.strip_prefix(name));
    assert_eq!(
        option("--agones-game="),
        Some(text(&labels["muse.dev/game"]).as_str())
    );
    assert_eq!(
        option("--region="),
        Some(text(&labels["muse.dev/region"]).as_str())
    );
    let namespace = text(&fleet["metadata"]["namespace"]);
    assert_eq!(option("--agones-namespace="), Some(namespace.as_str()));
    // Both have the fleet's key from the same secret, and none stands in a manifest.
    let game = game_container();
    assert_eq!(
        variable(&master, "MUSE_FLEET_KEY"),
        variable(&game, "MUSE_FLEET_KEY")
    );
    for name in ["MUSE_FLEET_KEY", "MUSE_DATABASE", "MUSE_OPERATOR_PASSWORD"] {
        let found = variable(&master, name).expect("set");
        assert!(!found["valueFrom"]["secretKeyRef"].is_badvalue(), "{name}");
    }
    // The port that is listened at is the one that Agones opens.
    let port = variable(&game, "MUSE_SERVER_PORT").expect("set");
    let opened = fleet["spec"]["template"]["spec"]["ports"][0]["containerPort"].as_i64();
    assert_eq!(text(&port["value"]).parse().ok(), opened);
    // The fleets' servers reach the service where the masters listen.
    let service = only("Service");
    let url = variable(&game, "MUSE_MASTER").expect("set");
    let expected = format!(
        "ws://{}.{}:{}",
        text(&service["metadata"]["name"]),
        text(&service["metadata"]["namespace"]),
        service["spec"]["ports"][0]["port"]
            .as_i64()
            .expect("a port"),
    );
    assert_eq!(text(&url["value"]), expected);
}

#[test]
fn a_master_may_do_in_the_cluster_what_it_does_and_no_more() {
    let role = only("Role");
    let rules = role["rules"].as_vec().expect("rules");
    assert_eq!(rules.len(), 1);
    assert_eq!(texts(&rules[0]["apiGroups"]), ["agones.dev"]);
    assert_eq!(texts(&rules[0]["resources"]), ["gameservers"]);
    let verbs: BTreeSet<String> = texts(&rules[0]["verbs"]).into_iter().collect();
    let needed = ["delete", "get", "list", "watch"].map(str::to_owned);
    assert_eq!(verbs, BTreeSet::from(needed));
}

#[test]
fn the_dashboard_shows_figures_that_masters_have() {
    let file = root().join("deploy/grafana/muse-master.json");
    let dashboard = std::fs::read_to_string(file).expect("a dashboard");
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).expect("JSON");
    let mut shown = BTreeSet::new();
    collect(&dashboard, &mut shown);
    assert!(!shown.is_empty());
    let page = std::fs::read_to_string(root().join("docs/operations.md")).expect("a page");
    for name in shown {
        assert!(page.contains(&name), "docs/operations.md lacks {name}");
    }
}

/// Names of figures in the expressions of a dashboard.
fn collect(value: &serde_json::Value, names: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            if let Some(expression) = fields.get("expr").and_then(|it| it.as_str()) {
                let words = expression.split(|it: char| !it.is_alphanumeric() && it != '_');
                let ours = words.filter(|word| word.starts_with("muse_"));
                let ending = |word: &str| {
                    let cut = ["_count", "_sum"]
                        .iter()
                        .find_map(|it| word.strip_suffix(it));
                    cut.unwrap_or(word).to_owned()
                };
                names.extend(ours.map(ending));
            }
            fields.values().for_each(|it| collect(it, names));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|it| collect(it, names)),
        _ => {}
    }
}

fn manifests() -> Vec<Yaml> {
    let mut found = Vec::new();
    for file in ["master.yaml", "fleet.yaml"] {
        let text = std::fs::read_to_string(root().join("deploy/kubernetes").join(file));
        let read = YamlLoader::load_from_str(&text.expect("a file")).expect("YAML");
        found.extend(read);
    }
    found
}

fn only(kind: &str) -> Yaml {
    let mut found = manifests()
        .into_iter()
        .filter(|it| text(&it["kind"]) == kind);
    let first = found.next().expect("one of the kind");
    assert!(found.next().is_none(), "more than one {kind}");
    first
}

fn container(workload: &Yaml) -> Yaml {
    workload["spec"]["template"]["spec"]["containers"][0].clone()
}

fn game_container() -> Yaml {
    container(&only("Fleet")["spec"]["template"])
}

fn variable(container: &Yaml, name: &str) -> Option<Yaml> {
    let variables = container["env"].as_vec()?;
    variables
        .iter()
        .find(|it| text(&it["name"]) == name)
        .cloned()
}

fn help(command: &str) -> String {
    let mut muse = Command::new(env!("CARGO_BIN_EXE_muse"));
    let output = muse.args([command, "--help"]).output().expect("it runs");
    assert!(output.status.success(), "no {command}");
    String::from_utf8(output.stdout).expect("text")
}

fn text(value: &Yaml) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Yaml) -> Vec<String> {
    value.as_vec().into_iter().flatten().map(text).collect()
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
