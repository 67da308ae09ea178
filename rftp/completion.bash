# SPDX-License-Identifier: Apache-2.0
# bash completion of rftp's options and local names; remote names complete in its shell

_rftp()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	# bash splits words at = and : ; --direct=on and rftp://host are meant as one
	[[ $cur == = ]] && cur=
	[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}
	case $prev in
	--fabric) mapfile -t COMPREPLY < <(compgen -W 'auto soft' -- "$cur") ;;
	--engine) mapfile -t COMPREPLY < <(compgen -W 'auto credit' -- "$cur") ;;
	--direct) mapfile -t COMPREPLY < <(compgen -W 'auto on off' -- "$cur") ;;
	--channels) mapfile -t COMPREPLY < <(compgen -W 'auto 1 2 4 8 16 32 64' -- "$cur") ;;
	--block) mapfile -t COMPREPLY < <(compgen -W 'auto 64K 256K 1M 4M 16M' -- "$cur") ;;
	--depth) mapfile -t COMPREPLY < <(compgen -W 'auto 8 16 32 64 128 256' -- "$cur") ;;
	-c | --command | --connect-timeout) ;;
	*)
		case $cur in
		-*)
			mapfile -t COMPREPLY < <(compgen -W '--recursive --no-replace --preserve --command
				--batch --quiet --verbose --json --connect-timeout --fabric --engine --channels
				--block --depth --direct --crc --version --help' -- "$cur") ;;
		*)
			compopt -o filenames
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			if [[ rftp:// == "$cur"* && -n $cur ]]; then
				compopt -o nospace
				COMPREPLY+=(rftp://)
			fi ;;
		esac ;;
	esac
}

complete -F _rftp rftp
