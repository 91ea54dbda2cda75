import { FormatRegistry, type Static, Type } from "@sinclair/typebox";
import { oneOf, optional, secret, variable } from "../variable_kinds.ts";
import { providersFault } from "./providers.ts";

const port = (value: number) => Type.Integer({ default: value, minimum: 0, maximum: 65_535 });
const milliseconds = (value: number) => Type.Integer({ default: value, minimum: 1, maximum: 3_600_000 });
/** Without user, password and query: secrets belong in headers. */
const collector = {
  pattern: "^https?://[^\\s/@?#]+(/[^\\s?#]*)?$",
  description: "an http(s) address without user, password and query",
};
/** `name=value`, comma-separated; other characters in a value are percent-encoded (W3C Baggage). */
const pairs = {
  pattern: "^[^\\s=,]+=[ -+\\--~]*(, *[^\\s=,]+=[ -+\\--~]*)*$",
  description: "a list of name=value, separated by commas",
};

/**
 * The configuration of telemetry. Names that start with OTEL_ are OpenTelemetry's, with their standard meaning
 * (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
 */
export const telemetryVariables = {
  metricProviders: variable(
    "METRIC_PROVIDERS",
    Type.Optional(Type.String({ format: "metric providers" })),
    "Metrics: `prometheus` (/metrics on a separate port), `otlp` (sent to a collector), or both, comma-separated. Without it, there are none",
  ),
  metricsHost: variable(
    "SVC_METRICS_HOST",
    Type.String({ default: "127.0.0.1", minLength: 1 }),
    "METRIC_PROVIDERS=prometheus: the address that serves /metrics, open to everyone who reaches it",
  ),
  metricsPort: variable(
    "SVC_METRICS_PORT",
    port(9464),
    "METRIC_PROVIDERS=prometheus: the server's port for /metrics; 0 takes any free port",
  ),
  schedulerMetricsPort: variable(
    "SVC_SCHEDULER_METRICS_PORT",
    port(9465),
    "METRIC_PROVIDERS=prometheus: the same for `svc scheduler start`",
  ),
  otelServiceName: variable(
    "OTEL_SERVICE_NAME",
    optional(),
    "The name of this service in telemetry (default svc-server or svc-scheduler)",
  ),
  otelResourceAttributes: variable(
    "OTEL_RESOURCE_ATTRIBUTES",
    optional(pairs),
    "Further attributes in telemetry, e.g. deployment.environment.name=production",
  ),
  otlpEndpoint: variable(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    Type.String({ ...collector, default: "http://localhost:4318" }),
    "The collector, for OTLP over HTTP; v1/metrics and v1/traces are appended",
  ),
  otlpHeaders: secret(
    "OTEL_EXPORTER_OTLP_HEADERS",
    optional(pairs),
    "Headers for the collector: name=value, comma-separated",
  ),
  otlpProtocol: variable(
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    oneOf(["http/json"], "http/json"),
    "The only supported protocol; every collector with OTLP over HTTP accepts it",
  ),
  otlpCompression: variable(
    "OTEL_EXPORTER_OTLP_COMPRESSION",
    oneOf(["none", "gzip"], "none"),
    "Compression of data sent to the collector",
  ),
  otlpTimeout: variable(
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    milliseconds(10_000),
    "Milliseconds to wait for the collector",
  ),
  otlpMetricsEndpoint: variable(
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    Type.Optional(Type.String(collector)),
    "Another address for metrics, used unchanged",
  ),
  otlpMetricsHeaders: secret(
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    optional(pairs),
    "Headers for metrics; they override OTEL_EXPORTER_OTLP_HEADERS",
  ),
  otelMetricExportInterval: variable(
    "OTEL_METRIC_EXPORT_INTERVAL",
    milliseconds(60_000),
    "METRIC_PROVIDERS=otlp: milliseconds between two exports of metrics",
  ),
  otelTracesExporter: variable(
    "OTEL_TRACES_EXPORTER",
    Type.Optional(Type.Union([Type.Literal("otlp"), Type.Literal("none")])),
    "`otlp` sends traces to the collector, which is the default if OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set; `none` does not",
  ),
  otlpTracesEndpoint: variable(
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    Type.Optional(Type.String(collector)),
    "Another address for traces, used unchanged",
  ),
  otlpTracesHeaders: secret(
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    optional(pairs),
    "Headers for traces; they override OTEL_EXPORTER_OTLP_HEADERS",
  ),
  otelTracesSampler: variable(
    "OTEL_TRACES_SAMPLER",
    oneOf(
      [
        "always_on",
        "always_off",
        "traceidratio",
        "parentbased_always_on",
        "parentbased_always_off",
        "parentbased_traceidratio",
      ],
      "parentbased_always_on",
    ),
    "Which traces are kept",
  ),
  otelTracesSamplerArg: variable(
    "OTEL_TRACES_SAMPLER_ARG",
    Type.Number({ default: 1, minimum: 0, maximum: 1 }),
    "The share of traces that a ratio sampler keeps",
  ),
};

FormatRegistry.Set("metric providers", (list) => providersFault(list) === undefined);

type Variables = typeof telemetryVariables;
/** The telemetry configuration of a program. */
export type TelemetryConfig = Readonly<{ [K in keyof Variables]: Static<Variables[K]["schema"]> }>;
