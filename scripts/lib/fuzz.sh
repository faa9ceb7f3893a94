# shellcheck shell=bash disable=SC2154  # pvr_root, pvr_scripts: common.sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Shared by the scripts of the fuzzers. To be sourced after common.sh.
#
# A target is a file tests/fuzz/fuzz_NAME.c with LLVMFuzzerTestOneInput(). Beside it:
#   corpus/NAME/   its committed inputs
#   NAME.dict      a dictionary, if the target has one
#   NAME.options   options of libFuzzer for this target, one line

# fuzz_targets [NAME...]: sets $fuzzers to these targets, or to all.
fuzz_targets()
{
	local name
	mapfile -t fuzzers < <(grep -l '^int LLVMFuzzerTestOneInput' "$pvr_root"/tests/fuzz/fuzz_*.c |
		sed 's|.*/fuzz_\(.*\)\.c$|\1|')
	for name; do
		[[ " ${fuzzers[*]} " == *" $name "* ]] || die "there is no fuzzer '$name', only: ${fuzzers[*]}"
	done
	if (($#)); then
		fuzzers=("$@")
	fi
}

# fuzz_build FOLDER MESON-OPTION...: builds $fuzzers in build/FOLDER.
fuzz_build()
{
	local folder=$1
	shift
	need clang clang
	CC=clang TARGETS="${fuzzers[*]/#/tests/fuzz/fuzz_}" "$pvr_scripts/build/host" "$folder" -Dfuzz=true "$@" \
		>/dev/null || die "the fuzzers do not build"
}

# fuzz_build_sanitized: builds $fuzzers with ASan and UBSan in build/fuzz, and sets what the sanitizers report.
fuzz_build_sanitized()
{
	fuzz_build fuzz -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Ddebug=false -Dc_args=-g1
	export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
	export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
}

# fuzz_options NAME: sets $fuzz_opts.
fuzz_options()
{
	local folder=$pvr_root/tests/fuzz more=()
	fuzz_opts=(-timeout=20 -rss_limit_mb=2048)
	if [[ -e $folder/$1.dict ]]; then
		fuzz_opts+=("-dict=$folder/$1.dict")
	fi
	if [[ -e $folder/$1.options ]]; then
		read -ra more <"$folder/$1.options" || true
		fuzz_opts+=("${more[@]}")
	fi
}
