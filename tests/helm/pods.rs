//! What each pod may and may not, for all example values.

use serde_json::{Value, json};

use crate::chart::{EXAMPLES, LEAST, checked, containers, example, helm, items, render, text_of_example};

#[test]
fn helm_finds_nothing_to_lint() {
    for name in EXAMPLES {
        let file = format!("ci/{name}-values.yaml");
        let said =
            helm(&["lint", ".", "--strict", "--values", &file]).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        assert!(said.contains("0 chart(s) failed"), "{name}: {said}");
    }
}

#[test]
fn manifests_are_what_kubernetes_takes() {
    for name in EXAMPLES {
        let manifests = checked(&text_of_example(name)).unwrap_or_else(|refused| panic!("{name}: {refused}"));
        assert!(manifests.len() > 5, "{name}");
    }
    // That the check bites is shown by some that are wrong.
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n";
    assert!(checked(service).is_ok());
    let wrong_kind = checked(&service.replace("port: 80", "port: eighty")).unwrap_err();
    assert!(wrong_kind.contains("Service/a") && wrong_kind.contains("port"), "{wrong_kind}");
    let misspelt = checked(&service.replace("ports", "prots")).unwrap_err();
    assert!(misspelt.contains("prots"), "{misspelt}");
    let twice = checked(&service.replace("kind: Service", "kind: Service\nkind: Service")).unwrap_err();
    assert!(twice.contains("twice"), "{twice}");
}

#[test]
fn no_pod_is_root_or_writes_to_its_root() {
    for name in EXAMPLES {
        for (pod, spec) in example(name).pods() {
            assert_eq!(spec["automountServiceAccountToken"], false, "{name} {pod}");
            assert_eq!(spec["securityContext"]["runAsNonRoot"], true, "{name} {pod}");
            assert_eq!(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", "{name} {pod}");
            for container in containers(spec) {
                let expected = json!({
                    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
                    "capabilities": {"drop": ["ALL"]},
                });
                assert_eq!(container["securityContext"], expected, "{name} {pod}");
                assert!(container["resources"]["requests"]["memory"].is_string(), "{name} {pod}");
                assert!(container["resources"]["limits"]["memory"].is_string(), "{name} {pod}");
                let image = container["image"].as_str().unwrap();
                assert!(image.contains(':') && !image.ends_with(":latest"), "{name} {pod}: {image}");
            }
        }
    }
}

#[test]
fn a_replica_is_asked_whether_it_lives_and_whether_it_takes_work() {
    for name in EXAMPLES {
        let rendered = example(name);
        let replica = &rendered.replica()["containers"][0];
        let path = |probe: &str| replica[probe]["httpGet"]["path"].as_str().unwrap().to_owned();
        assert_eq!(path("startupProbe"), "/healthz", "{name}");
        assert_eq!(path("livenessProbe"), "/healthz", "{name}");
        assert_eq!(path("readinessProbe"), "/readyz", "{name}");
        let scheme = if name == "hardened" { "HTTPS" } else { "HTTP" };
        assert_eq!(replica["readinessProbe"]["httpGet"]["scheme"], scheme, "{name}");
    }
}

#[test]
fn a_pod_gets_longer_to_end_than_its_drain_takes() {
    let pause = |spec: &Value| spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap();
    for name in EXAMPLES {
        let rendered = example(name);
        let spec = rendered.replica();
        assert!(spec["terminationGracePeriodSeconds"].as_u64().unwrap() > pause(spec) + 25, "{name}");
    }
    let settings = ["preStopSeconds=9", "terminationGracePeriodSeconds=64"];
    let enough = render(None, &[&LEAST[..], &settings].concat()).unwrap_or_else(|refused| panic!("{refused}"));
    assert_eq!(pause(enough.replica()), 9);
}

#[test]
fn two_replicas_share_the_work_and_none_is_preferred() {
    let rendered = example("cluster");
    assert_eq!(rendered.one("Deployment", "demo-caribou")["spec"]["replicas"], 2);
    assert_eq!(rendered.one("Service", "demo-caribou")["spec"]["sessionAffinity"], "None");
    assert_eq!(rendered.one("PodDisruptionBudget", "demo-caribou")["spec"]["maxUnavailable"], 1);
    let keys: Vec<_> = items(&rendered.replica()["topologySpreadConstraints"])
        .map(|one| one["topologyKey"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
    let strategy = &rendered.one("Deployment", "demo-caribou")["spec"]["strategy"]["rollingUpdate"];
    assert_eq!(*strategy, json!({"maxSurge": 1, "maxUnavailable": 0}));
}

#[test]
fn an_embedded_replica_is_alone_with_a_volume() {
    let rendered = example("embedded");
    let replicas = rendered.one("StatefulSet", "demo-caribou");
    assert_eq!(replicas["spec"]["replicas"], 1);
    let claim = &replicas["spec"]["volumeClaimTemplates"][0];
    assert_eq!(claim["metadata"]["name"], "data");
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "5Gi");
    for kind in ["PodDisruptionBudget", "HorizontalPodAutoscaler", "Deployment", "Job"] {
        assert_eq!(rendered.of_kind(kind).count(), 0, "{kind}");
    }
    let theirs = ["persistence.existingClaim=mine", "mode=embedded"];
    let rendered = render(None, &theirs).unwrap_or_else(|refused| panic!("{refused}"));
    let data = items(&rendered.replica()["volumes"]).find(|volume| volume["name"] == "data").unwrap();
    assert_eq!(data["persistentVolumeClaim"]["claimName"], "mine");
}

#[test]
fn the_schema_is_brought_up_before_a_replica_starts() {
    let migrates = |container: &Value| container["args"] == json!(["migrate"]);
    for name in ["cluster", "hardened", "trial"] {
        let rendered = example(name);
        assert!(items(&rendered.replica()["initContainers"]).any(migrates), "{name}");
    }
    let rendered = example("hardened");
    let job = rendered.one("Job", "demo-caribou-migrate");
    assert_eq!(job["metadata"]["annotations"]["helm.sh/hook"], "pre-install,pre-upgrade");
    let spec = &job["spec"]["template"]["spec"];
    assert!(items(&spec["containers"]).all(migrates));
    // A hook runs before anything else of the release is there.
    let text = spec.to_string();
    for made_later in ["demo-caribou-settings", "demo-caribou-extensions", "serviceAccountName"] {
        assert!(!text.contains(made_later), "{made_later}");
    }
}

#[test]
fn the_servers_document_is_followed_and_its_change_restarts_nobody() {
    let of = |servers: &str| {
        let servers = format!("extensions.content.mcpServers.{servers}.url=http://a.example");
        render(None, &[&LEAST[..], &[&servers]].concat()).unwrap_or_else(|refused| panic!("{refused}"))
    };
    let (one, other) = (of("one"), of("other"));
    assert_eq!(one.replica(), other.replica(), "pods do not depend on the document");
    for name in EXAMPLES {
        let rendered = example(name);
        for container in containers(rendered.replica()) {
            for mount in items(&container["volumeMounts"]) {
                assert!(mount.get("subPath").is_none(), "{name}: {mount} would never be renewed");
            }
        }
    }
    let annotations = |settings: &[&str]| {
        let rendered = render(None, &[&LEAST[..], settings].concat()).unwrap_or_else(|refused| panic!("{refused}"));
        rendered.one("Deployment", "demo-caribou")["spec"]["template"]["metadata"]["annotations"].clone()
    };
    assert_ne!(annotations(&[]), annotations(&["config.log.level=debug"]), "settings are read at the start");
}

#[test]
fn streams_pass_the_entries_as_they_come() {
    let rendered = example("embedded");
    let annotations = &rendered.one("Ingress", "demo-caribou")["metadata"]["annotations"];
    for (name, value) in
        [("proxy-buffering", "off"), ("proxy-request-buffering", "off"), ("proxy-read-timeout", "3600")]
    {
        assert_eq!(annotations[format!("nginx.ingress.kubernetes.io/{name}")], value, "{name}");
    }
    let theirs = "ingress.annotations.nginx\\.ingress\\.kubernetes\\.io/proxy-read-timeout=60";
    let rendered = render(Some("embedded"), &[theirs]);
    // `--set` makes it a number, which annotations are not.
    assert!(rendered.err().unwrap().contains("proxy-read-timeout"));
    let rendered = example("cluster");
    let route = rendered.one("HTTPRoute", "demo-caribou");
    assert_eq!(route["spec"]["rules"][0]["timeouts"], json!({"request": "0s", "backendRequest": "0s"}));
    assert_eq!(route["spec"]["rules"][0]["backendRefs"][0]["name"], "demo-caribou");
    assert_eq!(route["spec"]["parentRefs"][0]["name"], "public");
}

#[test]
fn replicas_grow_with_their_load_and_shrink_one_at_a_time() {
    let rendered = example("hardened");
    let scaler = &rendered.one("HorizontalPodAutoscaler", "demo-caribou")["spec"];
    assert_eq!((&scaler["minReplicas"], &scaler["maxReplicas"]), (&json!(3), &json!(9)));
    assert_eq!(scaler["scaleTargetRef"]["kind"], "Deployment");
    assert_eq!(scaler["metrics"].as_array().unwrap().len(), 2);
    assert_eq!(scaler["behavior"]["scaleDown"]["policies"][0]["value"], 1);
    assert!(rendered.one("Deployment", "demo-caribou")["spec"].get("replicas").is_none(), "the scaler says how many");
}
