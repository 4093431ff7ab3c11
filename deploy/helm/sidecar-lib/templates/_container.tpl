{{- define "sidecar-lib.image" -}}
{{- $image := .values.image -}}
{{- if $image.digest -}}{{ $image.repository }}@{{ $image.digest }}{{- else -}}{{ $image.repository }}:{{ $image.tag | default .chart.AppVersion }}{{- end -}}
{{- end -}}

{{/*
What differs between the pods of one release is worked out in the pod: Kubernetes replaces $(NAME) by the variables above it.
*/}}
{{- define "sidecar-lib.env" -}}
{{- $own := include "sidecar-lib.ownEnv" . -}}
{{- $names := list -}}
{{- range $own | fromYamlArray -}}{{- $names = append $names .name -}}{{- end -}}
{{- if eq .way "gateway" -}}
{{- range $section, $settings := include "sidecar-lib.settings" . | fromYaml -}}
{{- range $name, $value := $settings -}}{{- $names = append $names (printf "KAFKA_SIDECAR_%s__%s" (upper $section) (upper $name)) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range .values.env -}}
{{- if has .name $names -}}
{{- fail (printf "\n\nenv has %s, which the chart sets itself: leave it out, and use the chart's own values." .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{ $own }}
{{- with .values.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sidecar-lib.ownEnv" -}}
{{- $values := .values -}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: KAFKA_SIDECAR_CONTROL__ADVERTISED
  value: "$(POD_IP):{{ $values.control.port }}"
{{- if ne .way "sidecar" }}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: KAFKA_SIDECAR_KAFKA__NODE_ID
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"}}
- name: KAFKA_SIDECAR_KAFKA__ADVERTISED
  value: "$(POD_NAME).{{ .subdomain }}.$(POD_NAMESPACE).svc.{{ $values.clusterDomain }}:{{ $values.listeners.internal.port }}"
{{- with $values.rack.fromPodLabel }}
- name: KAFKA_SIDECAR_KAFKA__RACK
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['{{ . }}']"}}
{{- end }}
{{- end }}
{{- if eq .way "gateway" }}
- name: KAFKA_SIDECAR_CONFIG
  value: /etc/kafka-sidecar/sidecar.toml
{{- $external := $values.listeners.external }}
{{- if ne $external.type "none" }}
- name: HOST_IP
  valueFrom: {fieldRef: {fieldPath: status.hostIP}}
- name: KAFKA_SIDECAR_KAFKA__EXTERNAL_ADVERTISED
  value: {{ include "sidecar-lib.externalAdvertised" $external | quote }}
{{- end }}
{{- else }}
{{- include "sidecar-lib.settingsEnv" . }}
{{- end }}
{{- end -}}

{{/* One address for each node id, or one that the pod's own name or host makes. */}}
{{- define "sidecar-lib.externalAdvertised" -}}
{{- if .addresses -}}{{ join "," .addresses }}
{{- else if .domain -}}$(POD_NAME).{{ .domain }}:{{ .advertisedPort | default .port }}
{{- else -}}{{- range $place, $port := .nodePorts -}}{{ if $place }},{{ end }}$(HOST_IP):{{ $port }}{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The container. Beside an application or a broker it is a native sidecar: an init container that goes on (KEP-753). Such a one is stopped
after the application, and does not keep the pod of a finished job running.
*/}}
{{- define "sidecar-lib.container" -}}
{{- $values := .values -}}
{{- $isGateway := eq .way "gateway" -}}
{{- $resources := ternary $values.resources (ternary $values.sidecar.resources $values.brokerSidecar.resources (eq .way "sidecar")) $isGateway -}}
- name: kafka-sidecar
  image: {{ include "sidecar-lib.image" . | quote }}
  imagePullPolicy: {{ $values.image.pullPolicy }}
{{- if not $isGateway }}
  restartPolicy: Always
{{- end }}
  args: ["serve"]
  env:
    {{- include "sidecar-lib.env" . | nindent 4 }}
{{- with $values.envFrom }}
  envFrom:
    {{- toYaml . | nindent 4 }}
{{- end }}
  ports:
{{- if ne .way "sidecar" }}
    - {name: kafka, containerPort: {{ $values.listeners.internal.port }}, protocol: TCP}
{{- end }}
{{- if and $isGateway (ne $values.listeners.external.type "none") }}
    - {name: kafka-external, containerPort: {{ $values.listeners.external.port }}, protocol: TCP}
{{- end }}
    - {name: kafka-control, containerPort: {{ $values.control.port }}, protocol: TCP}
{{- if $values.metrics.enabled }}
    - {name: kafka-metrics, containerPort: {{ $values.metrics.port }}, protocol: TCP}
{{- end }}
{{- include "sidecar-lib.probes" . }}
{{- if and $isGateway $values.preStopSleepSeconds }}
  lifecycle:
    preStop: {sleep: {seconds: {{ $values.preStopSleepSeconds }}}}
{{- end }}
  resources:
    {{- toYaml $resources | nindent 4 }}
  securityContext:
    {{- toYaml $values.securityContext | nindent 4 }}
  terminationMessagePolicy: FallbackToLogsOnError
{{- if or $isGateway $values.extraVolumeMounts }}
  volumeMounts:
{{- if $isGateway }}
    # By its own path: an upgrade reaches a container only when that starts, and not what ctl and doctor read beside it.
    - {name: config, mountPath: /etc/kafka-sidecar/sidecar.toml, subPath: sidecar.toml, readOnly: true}
{{- end }}
{{- with $values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
`live` does not ask for Pulsar, `ready` waits until it was reached. Beside others readiness would count for the whole pod, so it is asked for only
on wish: a Pulsar that is away would keep every new application out of its Service, and beside a broker the broker itself, before it has begun.
*/}}
{{- define "sidecar-lib.probes" -}}
{{- $values := .values -}}
{{- $gated := and (eq .way "sidecar") $values.sidecar.gateAppReadiness -}}
{{- if $values.probes.startup.enabled }}
  startupProbe:
    grpc: {port: {{ $values.control.port }}, service: {{ ternary "ready" "live" $gated }}}
{{- /* Else a Pulsar that is away for a minute would have it started again and again. */}}
    {{- toYaml (ternary (mergeOverwrite (omit $values.probes.startup "enabled") (dict "failureThreshold" 86400)) (omit $values.probes.startup "enabled") $gated) | nindent 4 }}
{{- end }}
{{- if $values.probes.liveness.enabled }}
  livenessProbe:
    grpc: {port: {{ $values.control.port }}, service: live}
    {{- toYaml (omit $values.probes.liveness "enabled") | nindent 4 }}
{{- end }}
{{- if and $values.probes.readiness.enabled (or (eq .way "gateway") $gated) }}
  readinessProbe:
    grpc: {port: {{ $values.control.port }}, service: ready}
    {{- toYaml (omit $values.probes.readiness "enabled") | nindent 4 }}
{{- end }}
{{- end -}}
