const LIMIT_DESCRIPTORS = "ulimit -n 4096 2> /dev/null || true";

/**
 * What runs between the server and bwrap. Both are fixed texts: whatever differs comes as an argument, and no string of
 * a caller is among those. bash and not sh, since only bash closes descriptors above 9 and starts a program with an
 * empty environment.
 *
 * Arguments of both: files to join cgroups by, `--`, …, and at the end the program to become.
 */
const PREAMBLE = `
set -eu
umask 022
while [ "$1" != -- ]; do echo $$ > "$1"; shift; done
shift
ulimit -c 0
${LIMIT_DESCRIPTORS}
`;

/** Descriptors that the server inherited would be a way out: all but the ones given on purpose are closed. */
const CLOSE_DESCRIPTORS = `
for entry in /proc/self/fd/*; do
  number=\${entry##*/}
  if [ "$number" -gt 5 ]; then eval "exec $number>&-" || true; fi
done
`;

/**
 * For root: in a mount namespace of its own, so that nothing is left mounted when the last process has ended, however it
 * ended. All sources are collected on one small tmpfs where the unprivileged user can reach them, even when the data
 * folder lies in a private place. One `mount` reads a whole table: each program that is started costs a millisecond.
 *
 * Arguments: the table's file, the workspace, the uid, an interpreter and its program for mapped mounts; source and target of
 * each file; `--`; what the program takes for each mapped mount; `--`, and the program to become.
 */
const STAGE = `
table=$1 workspace=$2 uid=$3 python=$4 mapper=$5
shift 5
mount -a -T "$table"
install -d -o "$uid" -g "$uid" "$workspace"
while [ "$1" != -- ]; do
  : > "$2"
  mount --bind "$1" "$2"
  shift 2
done
shift
mapped=()
while [ "$1" != -- ]; do mapped+=("$1"); shift; done
shift
if [ "\${#mapped[@]}" -gt 0 ]; then "$python" -I -S -c "$mapper" "$uid" "\${mapped[@]}"; fi
`;

export const USER_SCRIPT = `${PREAMBLE}${CLOSE_DESCRIPTORS}exec -c "$@"`;

export const ROOT_SCRIPT = `${PREAMBLE}${STAGE}${CLOSE_DESCRIPTORS}exec -c setpriv --reuid "$uid" --regid "$uid" --clear-groups --pdeathsig KILL -- "$@"`;

/** Where the sources are collected: a folder that every machine has, and from which nothing is ever shown inside. */
export const STAGE_FOLDER = "/sys/kernel";

/** The next three are for tests that show what each precaution prevents. */
export function withInheritedDescriptors(script: string): string {
  return script.replace(CLOSE_DESCRIPTORS, "");
}

export function withInheritedEnvironment(script: string): string {
  return script.replace("exec -c ", "exec ");
}

export function withoutDescriptorLimit(script: string): string {
  return script.replace(LIMIT_DESCRIPTORS, "");
}
