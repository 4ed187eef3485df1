/** Where the program is: the user's setting, the workspace's venv where it is trusted, PATH. Knows no editor. */

import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';

export const INSTALL_COMMAND = 'pipx install workgraphd';

export interface Places {
  /** The user's setting; a workspace can never name it. */
  readonly setting: string;
  readonly workspace: string;
  readonly isTrusted: boolean;
  readonly path: string;
}

export interface Found {
  /** An absolute path. */
  readonly program: string;
  readonly by: 'setting' | 'venv' | 'path';
}

/** The program, or undefined. A setting that leads nowhere is no reason to run another one. */
export async function findProgram(places: Places): Promise<Found | undefined> {
  if (places.setting) {
    return isAbsolute(places.setting) && (await isRunnable(places.setting)) ? { program: places.setting, by: 'setting' } : undefined;
  }
  const inVenv = join(places.workspace, '.venv', 'bin', 'graphd');
  if (places.isTrusted && (await isRunnable(inVenv))) {
    return { program: inVenv, by: 'venv' };
  }
  for (const folder of places.path.split(delimiter).filter(isAbsolute)) {
    const program = join(folder, 'graphd');
    if (await isRunnable(program)) {
      return { program, by: 'path' };
    }
  }
  return undefined;
}

async function isRunnable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
