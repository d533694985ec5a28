# minutes DAY HH:MM - minutes from the start of the table to that moment.
minutes() {
    hour=${2%:*}
    minute=${2#*:}
    echo $((${hour#0} * 60 + ${minute#0}))
}
