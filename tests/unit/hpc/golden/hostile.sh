#!/bin/bash
#SBATCH --job-name="a b it\'s say \"no\" \$(touch x) \`touch x\` \$HOME a\#b a\\b -rf ; true a&b|c>d * ~ !x %j é ü 解 (a) {b} [c] = \\\\ \' \" \#SBATCH --nice=5"
#SBATCH --comment="say \"no\""
#SBATCH --output="/tmp/it\'s 100%% \$(odd)/%j.out"
#SBATCH --nice=5
set -e
export V0='a b'
export V1='it'"'"'s'
export V2='say "no"'
export V3='$(touch x)'
export V4='`touch x`'
export V5='$HOME'
export V6='a#b'
export V7='a\b'
export V8=-rf
export V9='; true'
export V10='a&b|c>d'
export V11='*'
export V12='~'
export V13='!x'
export V14=%j
export V15='é ü 解'
export V16='(a) {b} [c]'
export V17==
export V18='\\'
export V19=''"'"''
export V20='"'
export V21='#SBATCH --nice=5'
export SCRATCH="${TMPDIR:?}"'/it'"'"'s '"${USER:?}"'/$(x)'
exec printf '%s\0' 'a b' 'it'"'"'s' 'say "no"' '$(touch x)' '`touch x`' '$HOME' 'a#b' 'a\b' -rf '; true' 'a&b|c>d' '*' '~' '!x' %j 'é ü 解' '(a) {b} [c]' = '\\' ''"'"'' '"' '#SBATCH --nice=5' 'two
lines'
