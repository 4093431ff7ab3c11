{{/* What values.schema.json can't say. Each says what to change. */}}
{{- define "pulsar-kafka.validate" -}}
{{- $values := .Values -}}
{{- $needed := add $values.preStopSleepSeconds (ceil $values.handoverSeconds) (ceil $values.drainSeconds) 5 -}}
{{- if and $values.gateway.enabled (lt (int $values.terminationGracePeriodSeconds) (int $needed)) -}}
{{- fail (printf "\n\nterminationGracePeriodSeconds is %v: preStopSleepSeconds, handoverSeconds, drainSeconds and 5 more make %v. With less, pods are killed while they hand over." $values.terminationGracePeriodSeconds $needed) -}}
{{- end -}}
{{- $external := $values.listeners.external -}}
{{- if ne $external.type "none" -}}
  {{- $given := add (ternary 1 0 (not (empty $external.addresses))) (ternary 1 0 (not (empty $external.domain))) (ternary 1 0 (not (empty $external.nodePorts))) -}}
  {{- $count := int (include "pulsar-kafka.replicas" .) -}}
  {{- if eq (int $given) 0 -}}
    {{- fail "\n\nlisteners.external: clients from outside need addresses. Set addresses (one for each pod), domain, or with NodePort nodePorts." -}}
  {{- end -}}
  {{- if and $external.addresses (or $external.domain (lt (len $external.addresses) $count)) -}}
    {{- fail (printf "\n\nlisteners.external.addresses has %d addresses for %d pods: write one for each, and no domain." (len $external.addresses) $count) -}}
  {{- end -}}
  {{- if and (eq $external.type "NodePort") (or (empty $external.nodePorts) $external.domain) -}}
    {{- fail "\n\nlisteners.external: the type NodePort needs nodePorts, one for each pod; clients are told the pod's node and its port, or addresses with these ports. domain is for LoadBalancer." -}}
  {{- end -}}
  {{- if and $external.nodePorts (ne $external.type "NodePort") -}}
    {{- fail "\n\nlisteners.external.nodePorts is for the type NodePort." -}}
  {{- end -}}
  {{- if and $external.nodePorts (lt (len $external.nodePorts) $count) -}}
    {{- fail (printf "\n\nlisteners.external.nodePorts has %d ports for %d pods: write one for each." (len $external.nodePorts) $count) -}}
  {{- end -}}
{{- end -}}
{{- if and $values.gateway.enabled $values.brokerSidecar.enabled -}}
{{- fail "\n\ngateway.enabled and brokerSidecar.enabled: both number their pods from 0, and sidecars with the same node id are not told to clients. Choose one of them here, and install the other as a release of its own with config.kafka.node_id_base (1000, say)." -}}
{{- end -}}
{{- if and $values.extraVolumeMounts (or $values.sidecar.inject.enabled $values.brokerSidecar.enabled) -}}
{{- fail "\n\nextraVolumeMounts is for the gateway and for Spark's pod templates: pods of others do not have the volumes." -}}
{{- end -}}
{{- if $values.sidecar.inject.enabled -}}
  {{- range $values.envFrom -}}
    {{- if not (or (dig "secretRef" "optional" false .) (dig "configMapRef" "optional" false .)) -}}
      {{- fail "\n\nenvFrom: pods of other namespaces, beside which sidecar.inject puts sidecars, do not have these Secrets and would not start. Mark them as optional, or install the injection as a release of its own." -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if and $values.sidecar.gateAppReadiness (not $values.probes.startup.enabled) -}}
{{- fail "\n\nsidecar.gateAppReadiness needs probes.startup.enabled: that is what keeps the application from starting." -}}
{{- end -}}
{{- if $values.brokerSidecar.enabled -}}
{{- $broker := add 30 (ceil $values.handoverSeconds) (ceil $values.drainSeconds) 5 -}}
{{- if lt (int $values.brokerSidecar.gracePeriod) (int $broker) -}}
{{- fail (printf "\n\nbrokerSidecar.gracePeriod is %v: 30 seconds of the broker, handoverSeconds, drainSeconds and 5 more make %v. With less, sidecars are killed while they hand over." $values.brokerSidecar.gracePeriod $broker) -}}
{{- end -}}
{{- end -}}
{{- if not $values.gateway.enabled -}}
  {{- $unused := list -}}
  {{- range tuple "networkPolicy" "serviceMonitor" "prometheusRule" "dashboards" "autoscaling" -}}
    {{- if (index $values .).enabled -}}{{- $unused = append $unused (printf "%s.enabled" .) -}}{{- end -}}
  {{- end -}}
  {{- if ne $external.type "none" -}}{{- $unused = append $unused "listeners.external" -}}{{- end -}}
  {{- if $unused -}}
    {{- fail (printf "\n\n%s: only a gateway has that, and gateway.enabled is false." (join ", " $unused)) -}}
  {{- end -}}
{{- end -}}
{{- if not $values.metrics.enabled -}}
  {{- range tuple "serviceMonitor" "prometheusRule" "dashboards" -}}
    {{- if (index $values .).enabled -}}{{- fail (printf "\n\n%s.enabled needs metrics.enabled." .) -}}{{- end -}}
  {{- end -}}
{{- end -}}
{{- $ports := list (int $values.listeners.internal.port) (int $values.control.port) -}}
{{- if $values.metrics.enabled -}}{{- $ports = append $ports (int $values.metrics.port) -}}{{- end -}}
{{- if ne $external.type "none" -}}{{- $ports = append $ports (int $external.port) -}}{{- end -}}
{{- if ne (len $ports) (len (uniq $ports)) -}}
{{- fail (printf "\n\nlisteners, control and metrics use a port twice: %v" $ports) -}}
{{- end -}}
{{- if or $values.sidecar.inject.enabled $values.spark.podTemplate.enabled -}}
{{- if has (int $values.listeners.sidecar.port) (list (int $values.control.port) (ternary (int $values.metrics.port) 0 $values.metrics.enabled)) -}}
{{- fail (printf "\n\nlisteners.sidecar.port is %v, which control or metrics has." $values.listeners.sidecar.port) -}}
{{- end -}}
{{- end -}}
{{- if and $values.networkPolicy.restrictEgress (or (not (regexMatch ":[0-9]+(,|/|$)" $values.pulsar.serviceUrl)) (not (regexMatch ":[0-9]+(,|/|$)" $values.pulsar.adminUrl))) -}}
{{- fail "\n\nnetworkPolicy.restrictEgress needs the ports in pulsar.serviceUrl and pulsar.adminUrl." -}}
{{- end -}}
{{- if and $values.autoscaling.enabled (gt (int $values.autoscaling.minReplicas) (int $values.autoscaling.maxReplicas)) -}}
{{- fail "\n\nautoscaling.minReplicas is more than maxReplicas." -}}
{{- end -}}
{{- end -}}
