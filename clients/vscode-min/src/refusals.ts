/** The daemon's refusals in words for people. Knows no editor. */

import type { ErrorFacts, ErrorName } from 'graphd-protocol';

/** What the daemon says beside a message. */
export function factsOf(trouble: unknown): Partial<ErrorFacts> {
  const data = (trouble as { data?: unknown } | null | undefined)?.data;
  return typeof data === 'object' && data !== null ? (data as ErrorFacts) : {};
}

export function isRefused(trouble: unknown, code: ErrorName): boolean {
  return factsOf(trouble).code === code;
}

/** The message, and what to do next where that is said. */
export function messageOf(trouble: unknown): string {
  const said = trouble instanceof Error ? trouble.message : String(trouble);
  const { hint } = factsOf(trouble);
  return hint ? `${said} (${hint})` : said;
}
