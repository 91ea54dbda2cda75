import { type TSchema, Type } from "@sinclair/typebox";

/** One configuration variable: its name in the environment, its type with default, and its description. */
export interface Variable<S extends TSchema = TSchema> {
  name: string;
  schema: S;
  about: string;
  /** Masked in all output; `<name>_FILE` may name a file that contains the value. */
  secret: boolean;
}

export function variable<S extends TSchema>(name: string, schema: S, about: string): Variable<S> {
  return { name, schema, about, secret: false };
}

export function secret<S extends TSchema>(name: string, schema: S, about: string): Variable<S> {
  return { name, schema, about, secret: true };
}

export const url = (options = {}) =>
  Type.String({ pattern: "^https?://[^\\s/]+", description: "an http(s) address", ...options });
export const seconds = (value: number, minimum = 1) => Type.Integer({ default: value, minimum });
export const oneOf = <const T extends string>(values: readonly T[], value: NoInfer<T>) =>
  Type.Unsafe<T>(
    Type.Union(
      values.map((v) => Type.Literal(v)),
      { default: value },
    ),
  );
export const optional = (options = {}) => Type.Optional(Type.String({ minLength: 1, ...options }));
