#!/bin/sh
# Prints the number of days since an order was sent.
echo $(( ($(date +%s) - $(date -d "$1" +%s)) / 86400 ))
