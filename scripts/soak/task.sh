# One attempt of a task: what it sends is in SOAK_SENDS, a line each (staged or
# now, recipient, nonce, key or -), what it does then in SOAK_DO. Requests and
# answers go to SOAK_LOG.
n=1
printf '%s\n' "$SOAK_SENDS" | {
	while read -r how to nonce key; do
		[ -n "$how" ] || continue
		n=$((n + 1))
		named='' flags=''
		if [ "$how" = staged ]; then named="\"message\":\"$SOVEREIGN_MESSAGE_ID\",\"token\":$SOVEREIGN_CLAIM_TOKEN,"; else flags=--now; fi
		if [ "$key" = - ]; then key=''; else flags="$flags --key $key"; fi
		printf '{"kind":"call","call":%d,"method":"send",%s"to":"%s","nonce":"%s","key":"%s"}\n' \
			"$n" "$named" "$to" "$nonce" "$key" >>"$SOAK_LOG"
		out=$("$SOAK_BINARY" send "$to" "$nonce" --subject "$nonce" $flags --json 2>/dev/null </dev/null)
		printf '{"kind":"answer","call":%d,"raw":%s}\n' "$n" "${out:-null}" >>"$SOAK_LOG"
	done
}
[ -z "$SOAK_SPAWN" ] || setsid sleep 600 &
sleep "$SOAK_WORK"
case $SOAK_DO in
complete) printf '%s under %s' "$SOVEREIGN_MESSAGE_ID" "$SOVEREIGN_CLAIM_TOKEN" ;;
crash) kill -KILL $$ ;;
defer) exit 75 ;;
bad) exit 65 ;;
forever) sleep 600 ;;
*) exit 1 ;;
esac
