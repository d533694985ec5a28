# tide.sh DAY HH:MM - height of the water at that moment, in metres.
cd "$(dirname "$0")" || exit 2
. lib/clock.sh
. lib/height.sh

day=$1
time=$2

# The tide before the moment and the tide after it.
set -- $(awk -v day="$day" -v time="$time" '
    /^#/ { next }
    $1 > day || ($1 == day && $2 > time) { print before, $0; exit }
    { before = $0 }' tides.txt)
if [ $# -ne 8 ]; then
    echo "tide.sh: day $day at $time is not in the table" >&2
    exit 1
fi

now=$(minutes "$day" "$time")
from=$(minutes "$1" "$2")
to=$(minutes "$5" "$6")
cm=$(height $((now - from)) $((to - from)) "$4" "$8")
case $7 in high) way=rising ;; *) way=falling ;; esac
echo "$(metres "$cm"), $way"
