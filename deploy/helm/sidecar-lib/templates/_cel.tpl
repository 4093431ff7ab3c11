{{/*
A part of an object as CEL, for a MutatingAdmissionPolicy: `type` is its type there, `value` what it is. Resources are maps of quantities,
which CEL writes as maps; everything else is a message or a list of one kind.
*/}}
{{- define "sidecar-lib.cel" -}}
{{- $type := .type -}}
{{- if kindIs "map" .value -}}
  {{- $isPlain := or (hasSuffix ".limits" $type) (hasSuffix ".requests" $type) -}}
  {{- $parts := list -}}
  {{- range $name, $value := .value -}}
    {{- $of := include "sidecar-lib.cel" (dict "type" (printf "%s.%s" $type $name) "value" $value) -}}
    {{- $parts = append $parts (printf "%s: %s" (ternary (toJson $name) $name $isPlain) (ternary (toJson (toString $value)) $of $isPlain)) -}}
  {{- end -}}
  {{- ternary "" $type $isPlain }}{ {{- join ", " $parts -}} }
{{- else if kindIs "slice" .value -}}
  {{- $parts := list -}}
  {{- range .value -}}{{- $parts = append $parts (include "sidecar-lib.cel" (dict "type" $type "value" .)) -}}{{- end -}}
  [{{ join ", " $parts }}]
{{- else if kindIs "string" .value -}}
  {{- .value | toJson -}}
{{- else if kindIs "float64" .value -}}
  {{- int64 .value -}}
{{- else -}}
  {{- .value -}}
{{- end -}}
{{- end -}}
