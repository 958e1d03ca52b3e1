{{/* Names and labels. */}}

{{- define "caribou.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "caribou.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "caribou.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "caribou.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* What a pod is chosen by. Takes (list . "component"). */}}
{{- define "caribou.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "caribou.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Takes (list . "component"). */}}
{{- define "caribou.labels" -}}
{{- $root := index . 0 -}}
{{ include "caribou.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "caribou.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "caribou.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "caribou.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag }}
{{- printf "%s:%s%s" .Values.image.repository $tag (eq .Values.image.variant "stdio" | ternary "-stdio" "") }}
{{- end }}

{{/* One replica keeps its volume, and so its name; many are alike. */}}
{{- define "caribou.kind" -}}
{{- if eq .Values.mode "embedded" }}StatefulSet{{ else }}Deployment{{ end }}
{{- end }}

{{- define "caribou.everywhere" -}}
{{- if eq .Values.ipFamily "IPv6" }}[::]{{ else }}0.0.0.0{{ end }}
{{- end }}

{{- define "caribou.scheme" -}}
{{- if .Values.tls.existingSecret }}https{{ else }}http{{ end }}
{{- end }}

{{/* The Secret that a trial makes. */}}
{{- define "caribou.trialSecret" -}}
{{ include "caribou.fullname" . }}-trial
{{- end }}

{{- define "caribou.postgresqlSecret" -}}
{{- .Values.trial.enabled | ternary (include "caribou.trialSecret" .) .Values.postgresql.existingSecret }}
{{- end }}

{{- define "caribou.postgresqlKey" -}}
{{- .Values.trial.enabled | ternary "postgresql-url" .Values.postgresql.urlKey }}
{{- end }}

{{/* The name that certificates of replicas hold. */}}
{{- define "caribou.peersName" -}}
{{ include "caribou.fullname" . }}-peers.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "caribou.peersTlsSecret" -}}
{{- .Values.peers.tls.certManager.enabled | ternary (printf "%s-peers" (include "caribou.fullname" .)) .Values.peers.tls.existingSecret }}
{{- end }}

{{/* Where the servers' document comes from, as a volume. */}}
{{- define "caribou.extensionsVolume" -}}
{{- $items := list (dict "key" .Values.extensions.key "path" "extensions_config.json") -}}
{{- if .Values.extensions.existingSecret }}
secret:
  secretName: {{ .Values.extensions.existingSecret }}
  items: {{- toYaml $items | nindent 4 }}
{{- else if .Values.extensions.existingConfigMap }}
configMap:
  name: {{ .Values.extensions.existingConfigMap }}
  items: {{- toYaml $items | nindent 4 }}
{{- else }}
configMap:
  name: {{ include "caribou.fullname" . }}-extensions
{{- end }}
{{- end }}

{{/* Seconds that a stop may take beside the pause and the drain: closing sessions, the audit log, spans. */}}
{{- define "caribou.stopSeconds" -}}30{{- end }}

{{- define "caribou.drainSeconds" -}}
{{- dig "shutdown" "drain_seconds" 25 .Values.config | float64 | ceil | int64 }}
{{- end }}

{{/* config.yaml: what the values say, and the hosts that lead here, since web pages of theirs may call. */}}
{{- define "caribou.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $hosts := dig "rest" "allowed_hosts" list $config -}}
{{- if .Values.ingress.enabled }}
{{- range .Values.ingress.hosts }}{{- $hosts = append $hosts .host }}{{- end }}
{{- end }}
{{- if .Values.gateway.enabled }}
{{- $hosts = concat $hosts .Values.gateway.hostnames }}
{{- end }}
{{- $named := list }}
{{- range $hosts }}{{- if not (contains "*" .) }}{{- $named = append $named . }}{{- end }}{{- end }}
{{- if $named }}
{{- $_ := set $config "rest" (merge (dict "allowed_hosts" ($named | uniq)) (dig "rest" dict $config)) }}
{{- end }}
{{- toYaml $config }}
{{- end }}
