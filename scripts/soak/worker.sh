# A long-lived worker in sh, with the verbs of the program. It fails every third
# attempt and gives back every fourth. Requests and answers go to SOAK_LOG.
n=1
ask() { # method, message, token, more fields, command...
	n=$((n + 1))
	printf '{"kind":"call","call":%d,"method":"%s","message":"%s","token":%d%s}\n' "$n" "$1" "$2" "$3" "$4" >>"$SOAK_LOG"
	shift 4
	out=$("$SOAK_BINARY" "$@" --json 2>/dev/null </dev/null)
	status=$?
	printf '{"kind":"answer","call":%d,"raw":%s}\n' "$n" "${out:-null}" >>"$SOAK_LOG"
	return $status
}
while :; do
	ask claim '' 0 '' claim --wait 5s
	case $? in
	0) ;;
	4) continue ;;
	*) exit 0 ;;
	esac
	set -- $(printf %s "$out" | sed -n 's/.*"id":"\([^"]*\)".*"attempt":\([0-9]*\),"token":\([0-9]*\).*/\1 \2 \3/p')
	id=$1 attempt=$2 token=$3
	named="--id $id --token $token"
	if [ -n "$SOAK_CALM" ]; then # towards the end of a run nothing is held up
		ask complete "$id" "$token" '' complete "$id under $token" $named
		continue
	fi
	ask renew "$id" "$token" '' renew $named
	case $((attempt % 12)) in
	3 | 6 | 9) ask fail "$id" "$token" '' fail 'decided so' $named ;;
	4 | 8) ask release "$id" "$token" '' release $named ;;
	*)
		ask send "$id" "$token" ",\"to\":\"fold\",\"nonce\":\"0/$id.$attempt\"" send fold "0/$id.$attempt" --subject "0/$id.$attempt" $named
		ask complete "$id" "$token" '' complete "$id under $token" $named
		ask complete "$id" "$token" '' complete "$id under $token" $named
		;;
	esac
done
