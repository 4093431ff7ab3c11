{{- define "pulsar-kafka.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "pulsar-kafka.fullname" -}}
{{- if .Values.fullnameOverride -}}{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "pulsar-kafka.name" .) .Release.Name -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}{{ printf "%s-%s" .Release.Name (include "pulsar-kafka.name" .) | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "pulsar-kafka.selector" -}}
app.kubernetes.io/name: {{ include "pulsar-kafka.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end -}}

{{- define "pulsar-kafka.labels" -}}
app.kubernetes.io/name: {{ include "pulsar-kafka.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with omit .Values.commonLabels .Values.sidecar.inject.optOutLabel }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What every object begins with. A dict: root, suffix of the name, labels and annotations of its own. */}}
{{- define "pulsar-kafka.metadata" -}}
name: {{ include "pulsar-kafka.fullname" .root }}{{ .suffix }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "pulsar-kafka.labels" .root | nindent 2 }}
{{- with .labels }}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with mergeOverwrite (deepCopy .root.Values.commonAnnotations) (.annotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "pulsar-kafka.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}{{ .Values.serviceAccount.name | default (include "pulsar-kafka.fullname" .) }}
{{- else -}}{{ .Values.serviceAccount.name | default "default" }}{{- end -}}
{{- end -}}

{{/* The context of sidecar-lib's templates: a dict with root and way. */}}
{{- define "pulsar-kafka.container" -}}
{{- include "sidecar-lib.container" (include "pulsar-kafka.context" . | fromYaml) -}}
{{- end -}}

{{- define "pulsar-kafka.context" -}}
{{- $subdomain := ternary .root.Values.brokerSidecar.subdomain (printf "%s-nodes" (include "pulsar-kafka.fullname" .root)) (eq .way "broker") -}}
{{- dict "values" .root.Values "chart" (dict "AppVersion" .root.Chart.AppVersion) "way" .way "subdomain" $subdomain | toYaml -}}
{{- end -}}

{{- define "pulsar-kafka.replicas" -}}
{{- ternary .Values.autoscaling.maxReplicas .Values.gateway.replicas .Values.autoscaling.enabled -}}
{{- end -}}

{{/* $(POD_NAME) is the name of the pod that the Service is for. */}}
{{- define "pulsar-kafka.externalAnnotations" -}}
{{- .root.Values.listeners.external.annotations | toYaml | replace "$(POD_NAME)" (printf "%s-%d" (include "pulsar-kafka.fullname" .root) (int .index)) -}}
{{- end -}}

{{/* Not in values.yaml, where a value of one's own would be merged with it. */}}
{{- define "pulsar-kafka.namespaceLabel" -}}
{{- .Values.sidecar.inject.namespaceLabel | default (dict "kafka-sidecar/inject" "enabled") | toYaml -}}
{{- end -}}
