# SPDX-License-Identifier: Apache-2.0
# Rscript intervals.R FILE.csv: of each crossover (columns crossover, size, side, seconds) the 2.5 %
# and 97.5 % quantiles by boot::boot.ci, and where the broken line of segmented is zero.
suppressMessages({
  library(boot)
  library(segmented)
})

# The size from which on the GPU wins, on logarithmic axes; NA where there is none.
start_of <- function(difference, logs) {
  lost <- which(difference <= 0)
  last <- if (length(lost)) max(lost) else 0
  if (last == 0 || last == length(logs)) return(NA)
  share <- -difference[last] / (difference[last + 1] - difference[last])
  logs[last] + share * (logs[last + 1] - logs[last])
}

set.seed(1)
all <- read.csv(commandArgs(trailingOnly = TRUE)[1])
for (name in unique(all$crossover)) {
  rows <- all[all$crossover == name, ]
  rows$group <- interaction(rows$size, rows$side, drop = TRUE)
  sizes <- sort(unique(rows$size))
  difference_of <- function(rows) {
    medians <- tapply(log(rows$seconds), list(rows$size, rows$side), median)
    medians[, "cpu"] - medians[, "gpu"]
  }
  drawn <- boot(rows, function(d, i) start_of(difference_of(d[i, ]), log(sizes)),
    R = 1999, strata = rows$group
  )
  ci <- boot.ci(drawn, type = "perc")$percent[4:5]
  line <- data.frame(x = log(sizes), y = difference_of(rows))
  fit <- tryCatch(segmented(lm(y ~ x, line), seg.Z = ~x), error = function(e) lm(y ~ x, line))
  grid <- seq(min(line$x), max(line$x), length.out = 10000)
  zero <- start_of(predict(fit, data.frame(x = grid)), grid)
  cat(name, exp(ci), exp(zero), "\n")
}
