# SPDX-License-Identifier: Apache-2.0
#
# bash completion for rftp(1): options, their values, local names, and rftp:// URLs' paths, which are
# asked of the server that the URL names.

_rftp_url()
{
	local url=$1 rest host path line
	rest=${url#rftp://}
	[[ $rest == */* ]] || return
	host=${rest%%/*}
	path=/${rest#*/}
	path=${path%/*}/
	# without a terminal: nobody is asked for a password
	# a path with quotes or %NN is left alone: it would have to be decoded and encoded again
	[[ $path == *[\'%\\]* ]] && return
	while IFS= read -r line; do
		[[ $line =~ \"name\":\"([^\"\\]*)\".*\"type\":\"([a-z]*)\" ]] || continue
		line=${BASH_REMATCH[1]}
		[[ $line == *[^A-Za-z0-9._+,=@~:-]* ]] && continue
		[[ ${BASH_REMATCH[2]} == directory ]] && line+=/
		line=rftp://$host$path$line
		[[ $line == "$url"* ]] && COMPREPLY+=("$line")
	done < <($(type -P setsid) "${COMP_WORDS[0]}" --json --connect-timeout 2 -c "ls '$path'" "rftp://$host" 2>/dev/null)
}

_rftp()
{
	local cur prev words cword url
	if declare -F _get_comp_words_by_ref >/dev/null; then
		_get_comp_words_by_ref -n := cur prev words cword
	else
		cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	fi
	COMPREPLY=()
	case $prev in
	-b | --batch) compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")); return ;;
	-c | --command) return ;;
	--*)
		# --help is made from the table of options: "--direct auto|on|off"; capitals and digits stand for
		# something to fill in
		words=$("${COMP_WORDS[0]}" --help 2>/dev/null | sed -n "s/^.* $prev \([^ ]\{1,\}\).*/\1/p")
		if [[ $words ]]; then
			COMPREPLY=($(compgen -W "$(tr '|' '\n' <<<"$words" | grep -v '[A-Z0-9]')" -- "$cur"))
			return
		fi
		;;
	esac
	case $cur in
	rftp://*)
		_rftp_url "$cur"
		[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace
		if declare -F __ltrim_colon_completions >/dev/null; then
			__ltrim_colon_completions "$cur"
		else
			# what stands before the last colon is a word of its own to readline
			url=${cur%"${cur##*:}"}
			[[ $COMP_WORDBREAKS == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"$url"}")
		fi
		;;
	-*)
		words=$("${COMP_WORDS[0]}" --help 2>/dev/null | grep -o '^ \{2,6\}\(-., \)\?--[a-z0-9-]*' | grep -o -- '--.*')
		COMPREPLY=($(compgen -W "$words" -- "$cur"))
		;;
	*)
		compopt -o filenames
		local IFS=$'\n'
		COMPREPLY=($(compgen -f -- "$cur"))
		[[ ${COMP_CWORD} -eq 1 && doctor == "$cur"* && -n $cur ]] && COMPREPLY+=(doctor)
		[[ rftp:// == "$cur"* && -n $cur ]] && { COMPREPLY+=(rftp://); compopt -o nospace +o filenames; }
		;;
	esac
}
complete -F _rftp rftp
