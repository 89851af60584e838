// SPDX-License-Identifier: Apache-2.0
// The command line as plain data.
#ifndef WEIR_CLI_OPTIONS_FLAGS_H_
#define WEIR_CLI_OPTIONS_FLAGS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "calibrate/fit/new_device.h"
#include "plan/goodput/goodput.h"
#include "plan/papers/pipedream.h"
#include "plan/search/plan.pb.h"
#include "results/trace/select_gpus.h"
#include "scenarios/scenario.pb.h"

namespace weir::cli {

// Files of training frameworks that describe what is simulated; empty: none.
struct ImportFlags {
  std::string megatron_args;
  std::string sbatch;
  std::string nemo;
  std::string torchtitan;
  std::string deepspeed;
  std::vector<std::string> left_out;  // settings to ignore
};

// Number formats as they were given. Several flags set the same fields of the
// scenario (cli/options/precision_options.h); empty or false: not given.
struct FormatFlags {
  std::string precision;
  bool fp16 = false;
  bool bf16 = false;
  std::string fp8_format;
  std::string fp8_recipe;
  std::string fp4_format;
  std::map<std::string, bool> fp32_gradients;  // by flag
};

// The scenario to simulate: a scenario file, and flags that override it.
struct ScenarioFlags {
  std::string scenario;  // preset name or path; empty: only the flags
  Scenario overrides;    // every field that is set takes precedence
  // Absent: as in the scenario.
  std::optional<bool> sequence_parallel;
  std::optional<bool> flash_attention;
  std::optional<bool> dropout;
  std::optional<bool> fp32_gradients;
  std::optional<bool> fully_sharded;
  std::optional<bool> distributed_optimizer;
  std::optional<bool> post_validation;
  FormatFlags formats;
  std::map<std::string, bool> deepep;  // dispatches tokens, by flag
  // --moe-flex-dispatcher-backend; absent: not given.
  std::optional<TokenDispatcher> flex_backend;
  // --moe-deepep-num-sms and --moe-hybridep-num-sms are given.
  bool deepep_multiprocessors = false, hybridep_multiprocessors = false;
  std::string costs;  // "f=1,b=2", or the path of a table
  std::string hop;    // of given costs: "0.2ms", or "0.5x"; empty: theirs
  ImportFlags imports;
  std::vector<std::string> schedules;  // "compare" takes several
};

struct OutputFlags {
  enum class Format { kTable, kJson, kCsv };
  enum class Color { kAuto, kAlways, kNever };
  Format format = Format::kTable;
  Color color = Color::kAuto;
  bool quiet = false;
  bool json_messages = false;  // errors, warnings and notes as JSON
  bool textproto = false;      // --format textproto: a file to edit
  bool force = false;          // output files replace any file
  bool wide = false;           // tables with all columns, without wrapped lines
  std::vector<std::string> columns;  // of tables, see base/text_table.h
  std::string out;                   // results, protobuf
  std::string trace;                 // timeline, .pftrace, .json or .svg
  results::GpuSelection traced;      // GPUs in it
  std::string report;                // HTML
  std::string picture;               // "draw": SVG, PDF or PNG
  bool timeline = false;             // "simulate": on standard output
  bool slack = false;                // "compare": also the table of "slack"
  std::vector<std::string> emit;     // frameworks for which files are written
  std::string emit_to = "run";       // their path without suffix
};

// "schedule lint" and "schedule convert".
struct ScheduleFlags {
  std::vector<std::string> runtimes;  // that must be able to run it
  bool legacy = false;                // the file uses PyTorch's old dialect
  bool lower = false;
  bool merge_backward = false;
  bool transfers_only = false;  // no sharding, no reduction
  std::string output;           // empty: standard output
};

// "schedule synthesize".
struct SynthesisFlags {
  int method = 0;     // a SynthesisMethod
  int objective = 0;  // an OrderObjective
  bool offload = false;
  double seconds = 20;       // time limit of CBC
  double memory_limit = -1;  // microbatches; below 0: one per rank, 0: none
  uint32_t num_moves = 0;    // 0: depends on the problem's size
  uint32_t seed = 1;
  std::string out;
};

// "validate": the runs of a table, or one execution. "explain": one time.
struct MeasuredFlags {
  std::string file;
  std::string replay;           // a result, or a timeline as CSV
  std::string against;          // its prediction
  std::string columns;          // a MeasuredColumns as textproto; empty: none
  std::string where;            // "tp=2,pp=4"
  double tolerance = 0;         // largest relative error; 0: none
  double memory_tolerance = 0;  // with `replay`; 0: `tolerance`
  bool all = false;
  // "explain": one of them, or 0: the time of one batch, or FLOP/s per GPU.
  double step_seconds = 0;
  double flops_per_second = 0;
  bool calibrate = false;
  std::string overlay;  // file for the calibrated profile
};

// "profile import" and "profile diff".
struct ProfileFlags {
  std::string start;              // the starting point
  std::vector<std::string> also;  // further measurements
  calibrate::NewDevice device;    // without a name: that of `start`
  std::string source;             // named by its parameters; empty: the file
  std::string out;
  std::string other;     // the second profile
  double tolerance = 0;  // largest relative difference; 0: none
};

// "init": answers as text; empty: asked for, or the default.
struct InitFlags {
  std::string model, cluster, num_gpus, sequence_length, batch_size;
  std::string folder = "weir-run";
};

// "train-study".
struct TrainStudyFlags {
  std::string train_model;  // empty: the preset, with blocks for all stages
  uint32_t updates = 400;   // batches
  uint32_t seeds = 2;
  double learning_rate = 0.03;
  double momentum = 0.9;
  std::string plot;  // SVG, PDF or PNG
};

// "draw".
struct DrawFlags {
  // In the order of the names in cli/weir/draw_options.cc.
  enum class Kind {
    kDefault,  // depends on the input
    kTimeline,
    kMemory,
    kSlack,
    kIdle,
    kPareto,
    kHeatmap,
    kRoofline,
    kErrors,
  };
  Kind kind = Kind::kDefault;
  bool against_cost = false;  // Pareto front: of time and cost, not memory
  std::string fields;         // of a heat map: "tp,pp"; empty: the first two
  std::string metric = "step_seconds";
  double width_millimeters = 0;  // 0: that of `columns`
  bool one_column = false;
  bool title = true;
  std::vector<uint32_t> ranks;  // empty: all, or a selection
};

// "import" and "stragglers".
struct TraceFlags {
  std::vector<std::string> files;  // of one run
  std::string step;                // its number; empty: the median step
  std::string costs;               // "import": file of costs per stage
  std::vector<uint32_t> blocks;    // in each stage of `costs`; empty: unknown
  // "stragglers": tensor-parallel size of the run. 0: as the trace tells.
  uint32_t tensor = 0;
};

// "jobs".
struct JobsFlags {
  std::vector<std::string> scenarios;
  uint32_t num_nodes = 0;            // 0: as many as the jobs need
  std::vector<uint32_t> first_gpus;  // empty: one job after the other
};

// "jitter".
struct JitterFlags {
  std::vector<std::string> sources;  // "pass=lognormal:0.05"
  uint32_t num_samples = 1000;
  uint32_t seed = 1;
};

// "live".
struct LiveFlags {
  uint32_t port = 0;  // 0: any that is free
};

// "plan".
struct PlanFlags {
  PlanRequest request;       // its scenario comes from ScenarioFlags
  bool synchronous = false;  // only named schedules with a flush
  bool explain = false;
  bool stream = false;  // prints each better plan, as JSON
  // Ends the search; the simulations of the plans found come after it.
  double time_limit_seconds = std::numeric_limits<double>::infinity();

  std::string algorithm;             // a paper's planner; empty: the search
  std::string graph;                 // profile graph instead of a scenario
  plan::PipeDreamOptions pipedream;  // of the plan for a graph
};

// "goodput".
struct GoodputFlags {
  plan::GoodputRequest request;  // what the flags set
  std::string reliability = "llama-3-405b";
  std::string mtbf;  // "gpu=50000h,switch=1y"
  std::optional<double> detection_seconds, restart_seconds;
  uint32_t num_gpus = 0;  // without a scenario
  std::optional<uint32_t> gpus_per_node;
  std::optional<plan::CheckpointMode> checkpoint;
  uint32_t interval_steps = 0, num_runs = 200, seed = 1;  // of the request
  std::optional<uint32_t> num_spares;
  bool elastic = false, async_save = false;
};

// "energy".
struct EnergyFlags {
  std::string schedule = "1f1b";
  uint32_t num_microbatches = 8, num_chunks = 1;
  double blocking_watts = 0;  // of one GPU
  double gpus_per_stage = 1, time_scale = 1, unit_seconds = 0;
  std::string deadlines;  // "2.8,2.9", or a CSV
  std::vector<double> stragglers;
  uint32_t num_points = 20;
  double power_cap = 0;  // mean watts of one GPU; 0: none
  std::string costs;     // file for the times of passes
  double clock = 0;      // of these, in MHz; 0: the highest
};

// --energy of "simulate" and "compare".
struct StepEnergyFlags {
  std::string power;  // preset or file; empty: no energy
  double tokens = 0;  // of a run; 0: only steps
  double price = 0;   // of a kWh
  double carbon = 0;  // grams of CO2 per kWh
  double pue = 1;     // power usage effectiveness
  // If `power` is a table of measured passes: watts of a GPU that waits, and
  // the clock of all passes in MHz (0: the highest).
  double blocking_watts = 0, clock = 0;

  bool is_measured() const {
    return absl::EndsWith(power, ".csv") || absl::EndsWith(power, ".csv.gz");
  }
};

// "sweep" and "collect".
struct SweepFlags {
  std::string grid;    // "parallelism.pipeline=2,4,schedule=gpipe,1f1b"
  std::string points;  // CSV
  std::string folder = "weir-sweep";
  std::string shard = "0/1";
  // Time limit of the simulation of each point.
  double time_limit_seconds = std::numeric_limits<double>::infinity();
  bool resume = false;
  bool slurm = false;
  uint32_t slurm_nodes = 4;
  std::string slurm_args;
  bool wait = false;
  std::string sqlite, csv;  // "collect"
  std::string pivot;        // "tp,pp"
  std::string metric = "step_seconds";
  uint32_t top = 20;  // points of the table; 0: all
  bool complete = false;
};

struct Flags {
  std::string command;    // the whole line, for provenance
  std::string name;       // positional argument: a result, schedule, ...
  std::string result;     // which of several results
  bool fast = false;      // --method of "simulate" and "sweep"
  std::string flops;      // formula of TFLOP/s and MFU; empty: the default
  uint32_t num_jobs = 0;  // simulations at the same time; 0: one per core
  ScenarioFlags scenario;
  ScheduleFlags schedule;
  SynthesisFlags synthesis;
  MeasuredFlags measured;
  ProfileFlags profile;
  InitFlags init;
  TrainStudyFlags study;
  DrawFlags draw;
  PlanFlags plan;
  SweepFlags sweep;
  LiveFlags live;
  GoodputFlags goodput;
  EnergyFlags energy;
  StepEnergyFlags step_energy;
  TraceFlags trace;
  JobsFlags jobs;
  JitterFlags jitter;
  OutputFlags output;
};

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_FLAGS_H_
