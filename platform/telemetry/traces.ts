import {
  type Attributes,
  type Context,
  context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import type { Resource } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace-base";
import { version } from "../../package.json" with { type: "json" };
import type { Log } from "../log.ts";
import { collectorOf, logOutages } from "./collector.ts";
import type { Tracing, Work, WorkSpan } from "./telemetry.ts";
import { parseTraceParent } from "./trace_parent.ts";
import type { TelemetryConfig } from "./variables.ts";

/** The maximum number of spans waiting for the collector; more are lost. */
const queuedSpans = 2048;
const sentAtOnce = 512;
const longestWaitMilliseconds = 2000;

export function openTraces(config: TelemetryConfig, log: Log, resource: Resource) {
  const exporter = new OTLPTraceExporter(collectorOf(config, "traces"));
  const processor = new BatchSpanProcessor(logOutages(exporter, log, "traces"), {
    maxQueueSize: queuedSpans,
    maxExportBatchSize: sentAtOnce,
    scheduledDelayMillis: longestWaitMilliseconds,
    exportTimeoutMillis: config.otlpTimeout,
  });
  const provider = new BasicTracerProvider({
    resource,
    sampler: samplerOf(config),
    spanProcessors: [processor],
  });
  // Links a request to the work done for it; only the first context manager of a process takes effect.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  return { tracing: new Spans(provider.getTracer("svc", version)), stop: () => provider.shutdown() };
}

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT } as const;

class Spans implements Tracing {
  constructor(private readonly tracer: Tracer) {}

  async within<T>(work: Work, run: (span: WorkSpan) => Promise<T>): Promise<T> {
    const above = work.parent === undefined ? context.active() : remote(work.parent);
    const span = this.#begin(work, above);
    const view = new View(span);
    try {
      return await context.with(trace.setSpan(above, span), () => run(view));
    } catch (error) {
      // Without the message, which may contain a secret.
      view.failed(error instanceof Error ? error.name : typeof error);
      throw error;
    } finally {
      span.end();
    }
  }

  child(work: Work): View | undefined {
    const above = trace.getActiveSpan();
    return above?.isRecording() ? new View(this.#begin(work, context.active())) : undefined;
  }

  #begin({ name, kind, attributes }: Work, above: Context): Span {
    return this.tracer.startSpan(name, { kind: kind && kinds[kind], attributes }, above);
  }
}

class View implements WorkSpan {
  readonly traceId: string;

  constructor(private readonly span: Span) {
    this.traceId = span.spanContext().traceId;
  }

  rename(name: string): void {
    this.span.updateName(name);
  }

  note(attributes: Attributes): void {
    this.span.setAttributes(attributes);
  }

  failed(type?: string): void {
    this.span.setStatus({ code: SpanStatusCode.ERROR });
    if (type !== undefined) this.span.setAttribute("error.type", type);
  }

  end(): void {
    this.span.end();
  }
}

function remote(header: string | null): Context {
  const parent = parseTraceParent(header);
  return parent ? trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true }) : ROOT_CONTEXT;
}

function samplerOf({ otelTracesSampler: name, otelTracesSamplerArg: share }: TelemetryConfig): Sampler {
  const root = name.endsWith("always_on")
    ? new AlwaysOnSampler()
    : name.endsWith("always_off")
      ? new AlwaysOffSampler()
      : new TraceIdRatioBasedSampler(share);
  return name.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root;
}
