// SPDX-License-Identifier: Apache-2.0
// "sweep" and "collect".
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/options/add_option.h"
#include "cli/options/scenario_options.h"
#include "cli/options/shared_options.h"
#include "cli/weir/weir_app.h"
#include "plan/sweep/sweep_views.h"

namespace weir::cli {
namespace {

void AddSweep(CLI::App* app, Flags* flags) {
  SweepFlags* sweep = &flags->sweep;
  AddText(app, "SWEEP", "",
          "textproto file, see docs/sweep.md; flags override it", &flags->name);
  app->option_defaults()->group("Sweep");
  AddText(app, "--scenario", "SCENARIO",
          "base scenario of all points: preset or file",
          &flags->scenario.scenario);
  AddText(
      app, "--grid", "FIELD=VALUES",
      "axis of the sweep: a flag (tp, pp, mbs, schedule, recompute ...) or a "
      "field of the scenario, with comma-separated values, or ranges such as "
      "1..8, 1..9+2, 2..64*2",
      &sweep->grid)
      ->join(',');
  AddText(app, "--points", "FILE.csv",
          "points of the sweep: one column per field, one row per point",
          &sweep->points);
  AddMethod(app, "Sweep",
            "full simulations, or faster ones with the same results",
            &flags->fast);
  AddText(app, "--out", "FOLDER", "folder to which results are appended",
          &sweep->folder)
      ->default_str(sweep->folder);
  AddText(app, "--shard", "I/N", "run only points I, I + N, I + 2 N, ...",
          &sweep->shard)
      ->default_str(sweep->shard);
  AddSeconds(app, "--time-limit",
             "time limit per point; a point that exceeds it fails",
             &sweep->time_limit_seconds)
      ->default_str("none");
  AddSwitch(app, "--resume",
            "continue the sweep in --out; nothing else needs to be given",
            &sweep->resume);
  AddJobs(app, "Sweep", "points to simulate in parallel", &flags->num_jobs);
}

void AddSlurm(CLI::App* app, SweepFlags* sweep) {
  app->option_defaults()->group("Slurm");
  AddSwitch(app, "--slurm", "submit the sweep as a Slurm job array",
            &sweep->slurm);
  AddCount(app, "--slurm-nodes", "tasks of the job array, one per node",
           &sweep->slurm_nodes)
      ->default_str(absl::StrCat(sweep->slurm_nodes));
  AddText(app, "--slurm-args", "ARGS",
          "extra sbatch arguments: \"--partition=big --time=60\"",
          &sweep->slurm_args);
  AddSwitch(app, "--wait", "wait until the job has ended", &sweep->wait);
}

}  // namespace

void AddSweepCommands(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  CLI::App* run = AddWeirCommand(
      app, "sweep", "Simulates all combinations of values of scenario fields.",
      {"sweep --costs f=1,b=2 --microbatches 8 --grid "
       "pp=2,4,8 --grid schedule=gpipe,1f1b --out out/grid",
       "sweep my.textproto --shard 0/4 --out out/sweep --resume",
       "sweep my.textproto --slurm --slurm-nodes 8 --wait"},
      RunSweepCommand, line);
  AddSweep(run, flags);
  AddSlurm(run, &flags->sweep);
  AddScenario(run, /*several=*/false, &flags->scenario);
  AddReport(run, "--report", "heat maps of all points", &flags->output.report);
  AddForce(run, &flags->output.force);

  CLI::App* collect = AddWeirCommand(
      app, "collect",
      "Shows the points of a sweep as a table, a pivot, SQLite or CSV.",
      {"collect out/grid --pivot pp,schedule --metric peak_memory",
       "collect out/grid --csv out/grid.csv --sqlite out/grid.sqlite"},
      RunCollect, line);
  AddName(collect, "FOLDER", "folder written by weir sweep --out",
          &flags->name);
  collect->option_defaults()->group("Output");
  AddText(collect, "--sqlite", "FILE", "write all points to an SQLite database",
          &flags->sweep.sqlite);
  AddText(collect, "--csv", "FILE", "write all points to a CSV file",
          &flags->sweep.csv);
  AddText(collect, "--pivot", "ROWS,COLUMNS",
          "show the best points for the values of two swept fields",
          &flags->sweep.pivot);
  AddOption(collect, "--metric", "NAME",
            absl::StrCat("value in the cells of --pivot: ",
                         absl::StrJoin(plan::PivotMetrics(), ", ")),
            plan::ParsePivotMetric, &flags->sweep.metric)
      ->default_str("step_seconds");
  AddCount(collect, "--top", "points to show, best first; 0: all",
           &flags->sweep.top)
      ->default_str(absl::StrCat(flags->sweep.top));
  AddSwitch(collect, "--complete",
            "exit with 1 if points are missing or failed, or if none can run",
            &flags->sweep.complete)
      ->group("Verdict");
  AddFormat(collect, /*csv=*/true, &flags->output);
  AddColumns(collect, {}, &flags->output);
  AddReport(collect, "--report", "heat maps of all points",
            &flags->output.report);
  AddForce(collect, &flags->output.force);
}

}  // namespace weir::cli
