//! Values that are wrong, and what is said about them: what is misspelt or out of bounds by the schema, what only
//! together is wrong by the chart itself.

use crate::chart::{EXAMPLES, LEAST, render};

/// One wrong value beside the least that is right, and what the refusal must name.
const WRONG: [(&str, &[&str]); 33] = [
    ("replicas=3", &["replicas", "not allowed"]),
    ("image.version=1", &["/image", "version", "not allowed"]),
    ("config.sesions.max_live=5", &["/config", "sesions", "not allowed"]),
    ("config.sessions.max_live=0", &["/config/sessions/max_live", "minimum"]),
    ("config.auth.mode=disabled", &["/config/auth/mode"]),
    ("config.listen=0.0.0.0:80", &["/config", "listen", "not allowed"]),
    ("config.database_url=postgres://u:hunter2@db/c", &["/config", "database_url", "not allowed"]),
    ("config.log.format=xml", &["/config/log/format"]),
    ("mode=standalone", &["/mode", "cluster", "embedded"]),
    ("replicaCount=0", &["/replicaCount", "minimum"]),
    ("replicaCount=two", &["/replicaCount", "integer"]),
    ("image.tag=latest", &["image.tag", "name a version"]),
    ("image.variant=full", &["/image/variant", "remote", "stdio"]),
    ("service.port=70000", &["/service/port", "maximum"]),
    ("service.type=Ingress", &["/service/type"]),
    ("security.runAsUser=0", &["/security/runAsUser", "minimum"]),
    ("security.privileged=true", &["/security", "privileged", "not allowed"]),
    ("persistence.size=plenty", &["/persistence/size"]),
    ("credentials.existingSecret=Not_A_Name", &["/credentials/existingSecret"]),
    ("terminationGracePeriodSeconds=40", &["terminationGracePeriodSeconds", "up to 60 s", "raise it"]),
    ("config.shutdown.drain_seconds=100", &["terminationGracePeriodSeconds", "drain_seconds"]),
    ("podDisruptionBudget.maxUnavailable=2", &["podDisruptionBudget.maxUnavailable", "all 2 replicas"]),
    ("extensions.source=git", &["/extensions/source", "file", "database"]),
    ("extensions.content.mcpServers.a.command=uvx", &["mcpServers.a.command", "image.variant=stdio"]),
    ("extensions.content.mcpServers.a.headers.Authorization=Bearer x", &["headers.Authorization", "$NAME"]),
    ("extensions.content.mcpServers.a.oauth.refresh_token=x", &["oauth.refresh_token", "existingSecret"]),
    ("ingress.enabled=true", &["ingress.hosts", "at least one"]),
    ("gateway.enabled=true", &["gateway.parentRefs"]),
    ("peers.tls.enabled=true", &["peers.tls", "certManager.enabled"]),
    ("trial.enabled=true", &["trial.enabled", "its own PostgreSQL"]),
    ("metrics.serviceMonitor.interval=often", &["/metrics/serviceMonitor/interval"]),
    ("spread.whenUnsatisfiable=Never", &["/spread/whenUnsatisfiable"]),
    ("telemetry.otlpEndpoint=collector", &["/telemetry/otlpEndpoint"]),
];

#[test]
fn each_wrong_value_is_refused_by_name() {
    for (wrong, named) in WRONG {
        let said = render(None, &[&LEAST[..], &[wrong]].concat()).err();
        let said = said.unwrap_or_else(|| panic!("{wrong} is accepted"));
        for name in named {
            assert!(said.contains(name), "{wrong}: `{name}` is not in\n{said}");
        }
        assert!(!said.contains("hunter2"), "{wrong}: {said}");
    }
}

#[test]
fn a_cluster_without_what_it_shares_is_told_all_of_it_at_once() {
    let said = render(None, &[]).err().expect("a cluster needs secrets");
    for missing in LEAST.map(|setting| setting.split('=').next().unwrap()) {
        assert!(said.contains(missing), "{missing}: {said}");
    }
    for (at, missing) in LEAST.iter().enumerate() {
        let mut others = LEAST.to_vec();
        others.remove(at);
        let said = render(None, &others).err().unwrap_or_else(|| panic!("{missing} is not asked for"));
        assert!(said.contains(missing.split('=').next().unwrap()), "{said}");
    }
    let without_redis = [&LEAST[..], &["redis.existingSecret=", "redis.enabled=false"]].concat();
    assert!(render(None, &without_redis).is_ok(), "Redis only makes things faster");
}

#[test]
fn an_embedded_replica_refuses_what_only_a_cluster_has() {
    for wrong in ["autoscaling.enabled=true", "peers.tls.enabled=true", "trial.enabled=true", "redis.existingSecret=a"]
    {
        let said = render(None, &["mode=embedded", wrong]).err().unwrap_or_else(|| panic!("{wrong} is accepted"));
        assert!(said.contains("mode=cluster") || said.contains("embedded"), "{wrong}: {said}");
    }
}

#[test]
fn the_servers_document_comes_from_one_place() {
    let two = ["extensions.existingSecret=a", "extensions.existingConfigMap=b"];
    let said = render(None, &[&LEAST[..], &two].concat()).err().expect("two places");
    assert!(said.contains("extensions.existingConfigMap, extensions.existingSecret"), "{said}");
}

#[test]
fn a_secret_may_not_stand_in_a_pods_description() {
    let clear = ["extraEnv[0].name=CARIBOU_CLUSTER_SECRET", "extraEnv[0].value=hunter2"];
    let said = render(None, &[&LEAST[..], &clear].concat()).err().expect("a secret in clear");
    assert!(said.contains("extraEnv.CARIBOU_CLUSTER_SECRET") && !said.contains("hunter2"), "{said}");
    for example in EXAMPLES {
        let named = ["extraEnv[0].name=LOG_STYLE", "extraEnv[0].value=plain"];
        assert!(render(Some(example), &named).is_ok(), "{example}");
    }
}
