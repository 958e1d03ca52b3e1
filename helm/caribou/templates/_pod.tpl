{{/* What every pod of ours runs under: not root, nothing to gain, nothing to write but what is mounted. */}}
{{- define "caribou.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .Values.security.runAsUser | int64 }}
runAsGroup: {{ .Values.security.runAsUser | int64 }}
fsGroup: {{ .Values.security.fsGroup | int64 }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "caribou.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* One variable from a Secret. Takes (list "NAME" "secret" "key"). */}}
{{- define "caribou.fromSecret" -}}
- name: {{ index . 0 }}
  valueFrom:
    secretKeyRef:
      name: {{ index . 1 }}
      key: {{ index . 2 }}
{{- end }}

{{/* What `caribou migrate` needs. */}}
{{- define "caribou.databaseEnvironment" -}}
- name: CARIBOU_DATA_DIR
  value: /var/lib/caribou
{{- if eq .Values.mode "cluster" }}
{{ include "caribou.fromSecret" (list "CARIBOU_DATABASE_URL" (include "caribou.postgresqlSecret" .) (include "caribou.postgresqlKey" .)) }}
{{- end }}
{{- end }}

{{- define "caribou.environment" -}}
{{- $trial := include "caribou.trialSecret" . -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: CARIBOU_CONFIG
  value: /etc/caribou/settings/config.yaml
- name: CARIBOU_EXTENSIONS_CONFIG_PATH
  value: /etc/caribou/extensions/extensions_config.json
- name: CARIBOU_CONFIG_SOURCE
  value: {{ .Values.extensions.source }}
- name: CARIBOU_LISTEN
  value: {{ printf "%s:8750" (include "caribou.everywhere" .) | quote }}
{{- if .Values.grpc.enabled }}
- name: CARIBOU_GRPC_LISTEN
  value: {{ printf "%s:8752" (include "caribou.everywhere" .) | quote }}
{{- end }}
{{- if .Values.tls.existingSecret }}
- name: CARIBOU_TLS_CERT_FILE
  value: /etc/caribou/tls/tls.crt
- name: CARIBOU_TLS_KEY_FILE
  value: /etc/caribou/tls/tls.key
{{- end }}
{{ include "caribou.databaseEnvironment" . }}
{{- if eq .Values.mode "cluster" }}
- name: CARIBOU_DEPLOYMENT_MULTI_INSTANCE
  value: "true"
- name: CARIBOU_CLUSTER_LISTEN
  value: {{ printf "%s:8751" (include "caribou.everywhere" .) | quote }}
- name: CARIBOU_CLUSTER_ADVERTISE
  value: {{ eq .Values.ipFamily "IPv6" | ternary "[$(POD_IP)]:8751" "$(POD_IP):8751" | quote }}
{{- if .Values.peers.tls.enabled }}
- name: CARIBOU_CLUSTER_TLS_CERT_FILE
  value: /etc/caribou/peers/tls.crt
- name: CARIBOU_CLUSTER_TLS_KEY_FILE
  value: /etc/caribou/peers/tls.key
- name: CARIBOU_CLUSTER_TLS_CA_FILE
  value: /etc/caribou/peers/ca.crt
# Addresses of pods stand in no certificate, so all replicas show this name.
- name: CARIBOU_CLUSTER_TLS_NAME
  value: {{ include "caribou.peersName" . }}
{{- else }}
- name: CARIBOU_CLUSTER_ALLOW_PLAINTEXT
  value: "true"
{{- end }}
{{- if .Values.peers.existingSecret }}
{{ include "caribou.fromSecret" (list "CARIBOU_CLUSTER_SECRET" .Values.peers.existingSecret .Values.peers.key) }}
{{- else if .Values.trial.enabled }}
{{ include "caribou.fromSecret" (list "CARIBOU_CLUSTER_SECRET" $trial "peer-secret") }}
{{- end }}
{{- if .Values.trial.enabled }}
- name: CARIBOU_REDIS_URL
  value: redis://{{ include "caribou.fullname" . }}-redis:6379
{{- else if .Values.redis.enabled }}
{{ include "caribou.fromSecret" (list "CARIBOU_REDIS_URL" .Values.redis.existingSecret .Values.redis.urlKey) }}
{{- end }}
{{- if or .Values.trial.enabled .Values.redis.enabled }}
# Several releases may share one Redis.
- name: CARIBOU_REDIS_KEY_PREFIX
  value: caribou:{{ .Release.Namespace }}:{{ include "caribou.fullname" . }}
{{- end }}
{{- if .Values.threads.existingClaim }}
- name: CARIBOU_THREADS_ROOT
  value: /srv/threads
{{- end }}
{{- end }}
{{- if .Values.credentials.existingSecret }}
{{ include "caribou.fromSecret" (list "CARIBOU_CREDENTIALS_KEY" .Values.credentials.existingSecret .Values.credentials.key) }}
{{- else if .Values.trial.enabled }}
{{ include "caribou.fromSecret" (list "CARIBOU_CREDENTIALS_KEY" $trial "credentials-key") }}
{{- end }}
{{- with .Values.webhook }}
{{- if .existingSecret }}
{{ include "caribou.fromSecret" (list "CARIBOU_MCP_TASKS_NOTIFY_WEBHOOK_URL" .existingSecret .urlKey) }}
{{ include "caribou.fromSecret" (list "CARIBOU_MCP_TASKS_NOTIFY_WEBHOOK_SECRETS" .existingSecret .secretsKey) }}
{{- if .lookUpUrlKey }}
{{ include "caribou.fromSecret" (list "CARIBOU_MCP_TASKS_NOTIFY_WEBHOOK_LOOK_UP_URL" .existingSecret .lookUpUrlKey) }}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.telemetry.otlpEndpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .Values.telemetry.otlpEndpoint | quote }}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: k8s.namespace.name={{ .Release.Namespace }},k8s.pod.name=$(POD_NAME)
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* One probe of a replica. Takes (list . "path" settings). */}}
{{- define "caribou.probe" -}}
{{- $root := index . 0 -}}
httpGet:
  path: {{ index . 1 }}
  port: rest
  scheme: {{ include "caribou.scheme" $root | upper }}
{{ toYaml (index . 2) }}
{{- end }}

{{- define "caribou.mounts" -}}
- name: settings
  mountPath: /etc/caribou/settings
  readOnly: true
# The whole folder, never one file of it: a file that is mounted alone is not replaced when its source changes.
- name: extensions
  mountPath: /etc/caribou/extensions
  readOnly: true
- name: data
  mountPath: /var/lib/caribou
- name: home
  mountPath: /home/caribou
- name: tmp
  mountPath: /tmp
{{- if .Values.tls.existingSecret }}
- name: tls
  mountPath: /etc/caribou/tls
  readOnly: true
{{- end }}
{{- if eq .Values.mode "cluster" }}
{{- if .Values.peers.tls.enabled }}
- name: peers
  mountPath: /etc/caribou/peers
  readOnly: true
{{- end }}
{{- if .Values.threads.existingClaim }}
- name: threads
  mountPath: /srv/threads
{{- end }}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "caribou.volumes" -}}
- name: settings
  configMap:
    name: {{ include "caribou.fullname" . }}-settings
- name: extensions
  {{- include "caribou.extensionsVolume" . | nindent 2 }}
- name: home
  emptyDir:
    sizeLimit: {{ .Values.scratch.homeSize }}
- name: tmp
  emptyDir:
    sizeLimit: {{ .Values.scratch.tmpSize }}
{{- if eq .Values.mode "cluster" }}
- name: data
  emptyDir:
    sizeLimit: {{ .Values.scratch.dataSize }}
{{- else if .Values.persistence.existingClaim }}
- name: data
  persistentVolumeClaim:
    claimName: {{ .Values.persistence.existingClaim }}
{{- end }}
{{- if .Values.tls.existingSecret }}
- name: tls
  secret:
    secretName: {{ .Values.tls.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- if eq .Values.mode "cluster" }}
{{- if .Values.peers.tls.enabled }}
- name: peers
  secret:
    secretName: {{ include "caribou.peersTlsSecret" . }}
    defaultMode: 0440
{{- end }}
{{- if .Values.threads.existingClaim }}
- name: threads
  persistentVolumeClaim:
    claimName: {{ .Values.threads.existingClaim }}
{{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The container that gives the database its schema; many may run at once. */}}
{{- define "caribou.migrate" -}}
- name: migrate
  image: {{ include "caribou.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [migrate]
  env:
    {{- include "caribou.databaseEnvironment" . | nindent 4 }}
    {{- with .Values.extraEnv }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.extraEnvFrom }}
  envFrom: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext: {{- include "caribou.containerSecurity" . | nindent 4 }}
  resources: {{- toYaml .Values.resources | nindent 4 }}
  volumeMounts:
    - name: data
      mountPath: /var/lib/caribou
    - name: tmp
      mountPath: /tmp
    {{- with .Values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "caribou.container" -}}
- name: caribou
  image: {{ include "caribou.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [serve]
  ports:
    - name: rest
      containerPort: 8750
    {{- if eq .Values.mode "cluster" }}
    - name: peers
      containerPort: 8751
    {{- end }}
    {{- if .Values.grpc.enabled }}
    - name: grpc
      containerPort: 8752
    {{- end }}
  env: {{- include "caribou.environment" . | nindent 4 }}
  {{- with .Values.extraEnvFrom }}
  envFrom: {{- toYaml . | nindent 4 }}
  {{- end }}
  startupProbe: {{- include "caribou.probe" (list . "/healthz" .Values.probes.startup) | nindent 4 }}
  readinessProbe: {{- include "caribou.probe" (list . "/readyz" .Values.probes.readiness) | nindent 4 }}
  livenessProbe: {{- include "caribou.probe" (list . "/healthz" .Values.probes.liveness) | nindent 4 }}
  {{- if .Values.preStopSeconds }}
  lifecycle:
    preStop:
      # Balancers learn of the end beside us, not before: whoever still sends is served meanwhile.
      sleep:
        seconds: {{ .Values.preStopSeconds | int64 }}
  {{- end }}
  securityContext: {{- include "caribou.containerSecurity" . | nindent 4 }}
  resources: {{- toYaml .Values.resources | nindent 4 }}
  volumeMounts: {{- include "caribou.mounts" . | nindent 4 }}
{{- end }}

{{- define "caribou.podTemplate" -}}
metadata:
  labels:
    {{- include "caribou.labels" (list . "replica") | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # Settings are read at the start; the servers' document is followed, so it is not part of this.
    caribou/settings: {{ include "caribou.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "caribou.serviceAccount" . }}
  automountServiceAccountToken: false
  # Kubernetes would add a variable for each service it knows, some of them named like our settings.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds | int64 }}
  securityContext: {{- include "caribou.podSecurity" . | nindent 4 }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- if and (eq .Values.mode "cluster") .Values.migrations.atStart }}
  initContainers: {{- include "caribou.migrate" . | nindent 4 }}
  {{- end }}
  containers: {{- include "caribou.container" . | nindent 4 }}
  volumes: {{- include "caribou.volumes" . | nindent 4 }}
  {{- if eq .Values.mode "cluster" }}
  {{- with .Values.spread.topologyKeys }}
  topologySpreadConstraints:
    {{- range . }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: {{ $.Values.spread.whenUnsatisfiable }}
      labelSelector:
        matchLabels: {{- include "caribou.selector" (list $ "replica") | nindent 10 }}
    {{- end }}
  {{- end }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
