# check.sh - compares the program with what was read off the gauge. Ends with 1 if anything differs.
cd "$(dirname "$0")" || exit 2
LC_ALL=C
export LC_ALL

run=0
failed=0
for file in cases/*.txt; do
    while read -r day time want; do
        case $day in '#'* | '') continue ;; esac
        run=$((run + 1))
        got=$(sh tide.sh "$day" "$time" 2>&1 </dev/null)
        if [ "$got" = "$want" ]; then
            echo "ok    day $day $time  $got"
        else
            echo "FAIL  day $day $time  the gauge: $want; tide.sh: $got"
            failed=$((failed + 1))
        fi
    done <"$file"
done

if [ "$failed" -gt 0 ]; then
    echo "$failed of $run cases fail"
    exit 1
fi
echo "all $run cases pass"
