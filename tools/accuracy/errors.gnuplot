# Plots the errors of a set: their distribution, and measured against predicted.
# Called by tools/reproduce with `file`, `title` and `output`.
set terminal svg size 900,360 dynamic font "sans-serif,12" background "#ffffff"
set output output
set datafile separator ","
set key off
set grid lc rgb "#dddddd"
set multiplot layout 1,2 title title noenhanced
set xlabel "error, %"
set ylabel "part of rows up to it"
set yrange [0:1]
plot file every ::1 using (100*column(6)):(1) smooth cnormal lw 2 lc rgb "#1f77b4"
set autoscale y
set logscale xy
set xlabel "measured"
set ylabel "predicted"
plot file every ::1 using 4:5 pt 7 ps 0.4 lc rgb "#1f77b4", x lc rgb "#888888"
unset multiplot
