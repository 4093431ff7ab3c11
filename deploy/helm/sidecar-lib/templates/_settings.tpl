{{/*
The sidecar's settings, as sections. The context of all templates here is a dict:
  values  the chart's values        way  gateway, sidecar (beside an application) or broker (beside a Pulsar broker)
  chart   .Chart                    name and namespace, of the release's objects
What the chart works out itself can't be set in `config` as well: the two would contradict each other.
*/}}
{{- define "sidecar-lib.settings" -}}
{{- $values := .values -}}
{{- $host := ternary (printf "[%s]" $values.listenAddress) $values.listenAddress (contains ":" $values.listenAddress) -}}
{{- $own := dict
    "pulsar" (dict "url" $values.pulsar.serviceUrl "admin_url" $values.pulsar.adminUrl)
    "kafka" (dict "listen" (printf "%s:%v" $host $values.listeners.internal.port))
    "control" (dict "listen" (printf "%s:%v" $host $values.control.port))
    "limits" (dict "handover_seconds" $values.handoverSeconds "drain_seconds" $values.drainSeconds)
    "telemetry" (dict "log_format" $values.logFormat)
-}}
{{- if $values.pulsar.listenerName -}}{{- $_ := set $own.pulsar "listener_name" $values.pulsar.listenerName -}}{{- end -}}
{{- if $values.metrics.enabled -}}{{- $_ := set $own.telemetry "metrics_listen" (printf "%s:%v" $host $values.metrics.port) -}}{{- end -}}
{{- $further := $values.config -}}
{{- if eq .way "gateway" -}}
  {{- if ne $values.listeners.external.type "none" -}}{{- $_ := set $own.kafka "external_listen" (printf "%s:%v" $host $values.listeners.external.port) -}}{{- end -}}
{{- else if eq .way "sidecar" -}}
  {{- $_ := set $own.kafka "listen" (printf "127.0.0.1:%v" $values.listeners.sidecar.port) -}}
  {{- $further = mergeOverwrite (deepCopy $values.config) $values.sidecar.config -}}
{{- else -}}
  {{- /* The broker stops before the sidecar beside it, which goes on with the others meanwhile. */}}
  {{- $beside := $values.brokerSidecar -}}
  {{- $url := $beside.serviceUrl | default (printf "pulsar://127.0.0.1:6650,%s:6650" $beside.subdomain) -}}
  {{- $adminUrl := $beside.adminUrl | default (printf "http://127.0.0.1:8080,http://%s:8080" $beside.subdomain) -}}
  {{- $_ := set $own "pulsar" (dict "url" $url "admin_url" $adminUrl) -}}
{{- end -}}
{{- if and (ne .way "sidecar") (eq (toString (dig "groups" "coordinate" true $further)) "false") -}}
  {{- fail "\n\nconfig.groups.coordinate is false: gateways and sidecars beside brokers are a fleet, which coordinates. sidecar.config.groups.coordinate is for those beside applications." -}}
{{- end -}}
{{- range $section, $settings := $further -}}
  {{- range $name, $value := $settings -}}
    {{- if or (hasKey (get $own $section | default dict) $name) (has (printf "%s.%s" $section $name) (list "kafka.node_id" "kafka.advertised" "kafka.external_listen" "kafka.external_advertised" "control.advertised" "telemetry.metrics_listen")) -}}
      {{- fail (printf "\n\nconfig.%s.%s is worked out by the chart: set it by the chart's own values (listeners, control, metrics, pulsar, drainSeconds) instead." $section $name) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- mergeOverwrite $own (deepCopy $further) | toYaml -}}
{{- end -}}

{{/* The settings as the file for --config. Numbers are floats by the time a template sees them, and large ones would be written as 1e+08. */}}
{{- define "sidecar-lib.toml" -}}
{{- range $section, $settings := include "sidecar-lib.settings" . | fromYaml }}
[{{ $section }}]
{{- range $name, $value := $settings }}
{{ $name }} = {{ if kindIs "string" $value }}{{ $value | toJson }}{{ else }}{{ include "sidecar-lib.scalar" $value }}{{ end }}
{{- end }}
{{ end -}}
{{- end -}}

{{- define "sidecar-lib.scalar" -}}
{{- if kindIs "float64" . -}}
{{- if eq (floor .) . -}}{{- int64 . -}}{{- else -}}{{- . -}}{{- end -}}
{{- else if or (kindIs "map" .) (kindIs "slice" .) (kindIs "invalid" .) -}}
{{- fail (printf "\n\nconfig has %s: a setting is text, a number, true or false (docs/configuration.md)." (toJson .)) -}}
{{- else -}}{{- . -}}{{- end -}}
{{- end -}}

{{/* The settings as environment variables: what is beside an application lives in namespaces where the chart has no objects. */}}
{{- define "sidecar-lib.settingsEnv" -}}
{{- range $section, $settings := include "sidecar-lib.settings" . | fromYaml }}
{{- range $name, $value := $settings }}
- name: KAFKA_SIDECAR_{{ upper $section }}__{{ upper $name }}
  value: {{ include "sidecar-lib.scalar" $value | quote }}
{{- end }}
{{- end }}
{{- end -}}
