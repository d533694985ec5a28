# The tide program of 1994: straight lines from tide to tide. Kept for its tables.
{ h[NR] = $4 }
END { for (i = 1; i < NR; i++) printf "%d %.1f\n", i, (h[i] + h[i + 1]) / 200 }
