import type { Adapter, AdapterPayload } from "oidc-provider";

const capacity = 5000;

/**
 * A bounded in-memory store for oidc-provider, so that no client can exhaust the memory: new entries replace those not
 * written for longest. A restart discards all of them, as well as the keys.
 */
export function memoryAdapter(): (model: string) => Adapter {
  const entries = new Map<string, { payload: AdapterPayload; expires: number }>();
  const uids = new Map<string, string>();

  const find = (key: string | undefined): AdapterPayload | undefined => {
    const entry = key === undefined ? undefined : entries.get(key);
    if (!entry || entry.expires > Date.now()) return entry?.payload;
    remove(key!);
    return undefined;
  };
  const remove = (key: string) => {
    const uid = entries.get(key)?.payload.uid;
    entries.delete(key);
    if (uid !== undefined && uids.get(uid) === key) uids.delete(uid);
  };

  return (model) => ({
    async upsert(id, payload, expiresIn) {
      const key = `${model}:${id}`;
      remove(key);
      entries.set(key, {
        payload,
        expires: expiresIn ? Date.now() + expiresIn * 1000 : Number.POSITIVE_INFINITY,
      });
      if (model === "Session" && payload.uid) uids.set(payload.uid, key);
      if (entries.size > capacity) remove(entries.keys().next().value!);
    },
    find: async (id) => find(`${model}:${id}`),
    findByUid: async (uid) => find(uids.get(uid)),
    findByUserCode: async () => undefined,
    async consume(id) {
      const payload = find(`${model}:${id}`);
      if (payload) payload.consumed = Math.floor(Date.now() / 1000);
    },
    destroy: async (id) => remove(`${model}:${id}`),
    async revokeByGrantId(grantId) {
      for (const [key, { payload }] of entries) if (payload.grantId === grantId) remove(key);
    },
  });
}
