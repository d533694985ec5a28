# height ELAPSED BETWEEN FROM TO - centimetres, ELAPSED of BETWEEN minutes after the tide FROM, on the way to TO.
height() {
    sixth=$(($2 / 6))
    step=$(($1 / sixth))
    part=$(($1 - step * sixth))
    # Twelfths gone before this sixth, and those that go in it.
    case $step in
        0) gone=0 share=1 ;;
        1) gone=1 share=2 ;;
        2) gone=3 share=3 ;;
        3) gone=6 share=3 ;;
        4) gone=9 share=2 ;;
        5) gone=11 share=1 ;;
        *) gone=12 share=0 ;;
    esac
    echo $(($3 + ($4 - $3) * (gone * sixth + share * part) / (12 * sixth)))
}

# metres CM - the height as the board shows it.
metres() {
    tenths=$((($1 + 5) / 10))
    echo "$((tenths / 10)).$((tenths % 10)) m"
}
