// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/measurement_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/layer_work.h"
#include "models/model.h"

namespace weir::calibrate {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr double kReferenceSize = 4096, kSustainedSize = 8192;

// Additional lengths of attention, to separate the efficiency of long sequences
// from the losses of short ones.
constexpr int kAttentionLengths[] = {512, 1024, 2048, 4096, 8192};
constexpr double kAttentionTokens = 8192;  // approximate number in each
constexpr uint32_t kMostPositions = 8192;

// A part of the model: a number of blocks, with or without embedding and head.
struct Layers {
  const char* name;
  int num_blocks;
  bool embedding, head;
};
constexpr Layers kStages[] = {{"1 block", 1, false, false},
                              {"2 blocks", 2, false, false},
                              {"embedding + 2 blocks", 2, true, false},
                              {"2 blocks + head", 2, false, true}};

absl::StatusOr<PlannedStage> MakeStage(const Model& model,
                                       const PlanOptions& options,
                                       const Layers& layers,
                                       const models::WorkSpec& work) {
  const int blocks = static_cast<int>(model.transformer().num_layers());
  PlannedStage stage;
  stage.num_blocks = layers.num_blocks;
  stage.has_embedding = layers.embedding;
  stage.has_head = layers.head;
  stage.spec.work = work;
  stage.spec.format = options.format;
  stage.spec.dropout = static_cast<float>(options.dropout);
  stage.spec.fused_attention = work.flash_attention;
  // Layer 0 is the embedding, layer blocks + 1 the head.
  stage.spec.last_layer = layers.head ? blocks + 2 : layers.num_blocks + 1;
  stage.spec.first_layer = layers.head        ? blocks + 1 - layers.num_blocks
                           : layers.embedding ? 0
                                              : 1;
  stage.key =
      absl::StrCat(model.name(), " ", layers.name, " mb ", work.microbatch_size,
                   " s ", work.sequence_length, " tp ", work.tensor_parallel,
                   work.flash_attention ? " fused" : "",
                   work.dropout ? " dropout " : " ", Name(options.format));
  ASSIGN_OR_RETURN(StageProgram program, BuildStageProgram(model, stage.spec));
  stage.program = std::make_shared<const StageProgram>(std::move(program));
  return stage;
}

class Planner {
 public:
  Planner(const Model& model, const PlanOptions& options)
      : model_(model), options_(options) {
    plan_.model = model.name();
    plan_.format = options.format;
    plan_.num_partitions = options.num_partitions;
    plan_.purpose = options.purpose;
  }

  absl::StatusOr<MeasuringPlan> Make();

 private:
  using Kind = Workload::Kind;

  absl::Status AddStages();
  void AddOps(const PlannedStage& stage);
  void AddPasses(int stage);
  void AddLoads(const Workload& alone);
  void AddMemory(int stage);
  void AddAttention();
  void AddGemm(double m, double n, double k);
  void AddGemms();
  void AddTransfers();
  void AddOverlaps();
  void Add(Workload workload) {
    if (keys_.insert(workload.key).second) {
      plan_.workloads.push_back(std::move(workload));
    }
  }

  models::WorkSpec Work(int microbatch, int sequence, int tensor,
                        bool fused) const;

  const Model& model_;
  const PlanOptions& options_;
  MeasuringPlan plan_;
  std::set<std::string> keys_;
};

models::WorkSpec Planner::Work(int microbatch, int sequence, int tensor,
                               bool fused) const {
  models::WorkSpec work;
  work.microbatch_size = microbatch;
  work.sequence_length = sequence;
  work.tensor_parallel = tensor;
  work.flash_attention = fused;
  work.dropout = options_.dropout > 0;
  work.vocabulary_multiple = options_.vocabulary_multiple;
  return work;
}

absl::Status Planner::AddStages() {
  std::vector<int> lengths = options_.sequence_lengths;
  if (lengths.empty()) {
    lengths = {static_cast<int>(models::DefaultSequenceLength(model_))};
  }
  const int blocks = static_cast<int>(model_.transformer().num_layers());
  for (int tensor : options_.tensor_parallel) {
    for (int length : lengths) {
      for (int microbatch : options_.microbatch_sizes) {
        for (const bool fused : {true, false}) {
          if (!(fused ? options_.fused_attention
                      : options_.unfused_attention)) {
            continue;
          }
          const models::WorkSpec work = Work(microbatch, length, tensor, fused);
          for (const Layers& layers : kStages) {
            if (layers.num_blocks > blocks) continue;
            ASSIGN_OR_RETURN(PlannedStage stage,
                             MakeStage(model_, options_, layers, work));
            plan_.stages.push_back(std::move(stage));
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

void Planner::AddOps(const PlannedStage& stage) {
  for (int pass = 0; pass < kNumProgramPasses; ++pass) {
    const auto& ops = stage.program->passes[pass];
    for (size_t op = 0; op < ops.size(); ++op) {
      Workload workload;
      workload.kind = Kind::kOp;
      workload.key = OpKey(*stage.program, ops[op]);
      workload.program = stage.program;
      workload.pass = static_cast<ProgramPass>(pass);
      workload.op = static_cast<int>(op);
      Add(std::move(workload));
    }
  }
}

void Planner::AddPasses(int stage) {
  const PlannedStage& planned = plan_.stages[stage];
  for (int i = 0; i < kNumProgramPasses; ++i) {
    const auto& ops = planned.program->passes[i];
    if (ops.empty()) continue;
    PlannedPass pass;
    pass.stage = stage;
    pass.pass = static_cast<ProgramPass>(i);
    pass.key = absl::StrCat("pass ", Name(pass.pass), " of ", planned.key);
    for (const StageOp& op : ops) {
      pass.op_keys.push_back(OpKey(*planned.program, op));
    }
    Workload workload;
    workload.kind = Kind::kPass;
    workload.key = pass.key;
    workload.program = planned.program;
    workload.pass = pass.pass;
    Workload by_stream = workload;
    by_stream.by_stream = true;
    by_stream.key = absl::StrCat(pass.key, " launched one by one");
    const bool of_replays = plan_.purpose == DeviceProfile::REPLAYS;
    if (of_replays) pass.stream_key = by_stream.key;
    plan_.passes.push_back(std::move(pass));
    Add(workload);
    if (of_replays) Add(std::move(by_stream));
    AddLoads(workload);
  }
}

// Added directly after the uncontended pass, so that the device hardly drifts
// between them.
void Planner::AddLoads(const Workload& alone) {
  const int num_parts = options_.num_partitions;
  std::set<int> active = {num_parts};
  for (int k = 2; k < num_parts; k *= 2) active.insert(k);
  for (int k : active) {
    if (k < 2) continue;
    Workload loaded = alone;
    loaded.active_partitions = k;
    loaded.key =
        absl::StrCat(alone.key, " while ", k, " of ", num_parts, " parts work");
    plan_.loads.push_back(
        {loaded.key, static_cast<int>(plan_.passes.size()) - 1, k});
    Add(std::move(loaded));
  }
}

void Planner::AddMemory(int stage) {
  for (int microbatches : {1, 2, 4}) {
    plan_.memory.push_back(
        {absl::StrCat("memory of ", microbatches, " microbatches of ",
                      plan_.stages[stage].key),
         stage, microbatches});
  }
}

void Planner::AddAttention() {
  if (!options_.fused_attention) return;
  Model model = model_;
  // Learned positions limit the length; attention does not.
  uint32_t positions = model.transformer().num_positions();
  if (positions > 0) positions = std::max<uint32_t>(positions, kMostPositions);
  model.mutable_transformer()->set_num_positions(positions);
  for (int length : kAttentionLengths) {
    const int microbatch =
        std::max(1, static_cast<int>(kAttentionTokens / length));
    models::WorkSpec work =
        Work(microbatch, length, options_.tensor_parallel.front(), true);
    work.dropout = false;
    // Only its attention is used. Lengths with a shorter window are skipped.
    auto stage = MakeStage(model, options_, kStages[0], work);
    if (!stage.ok()) continue;
    for (int pass = 0; pass < kNumProgramPasses; ++pass) {
      const auto& ops = stage->program->passes[pass];
      for (size_t op = 0; op < ops.size(); ++op) {
        if (ops[op].kind != OpKind::kAttentionForward &&
            ops[op].kind != OpKind::kAttentionBackward) {
          continue;
        }
        Add({Kind::kOp, OpKey(*stage->program, ops[op]), stage->program,
             static_cast<ProgramPass>(pass), static_cast<int>(op), 0, 0});
      }
    }
  }
}

void Planner::AddGemm(double m, double n, double k) {
  const auto program = GemmProgram(m, n, k, options_.format);
  Add({Kind::kOp, OpKey(*program, program->passes[0][0]), program,
       ProgramPass::kForward, 0, 0, 0});
}

// GEMMs beyond the model's own, to fit the GEMM model: few and many tiles,
// short and long sums, sizes that do not fill the last wave.
void Planner::AddGemms() {
  for (double m : {128, 512, 2048, 8192}) {
    for (double n : {256, 1024, 4096, 12288}) {
      for (double k : {256, 1024, 4096, 12288}) AddGemm(m, n, k);
    }
  }
  for (double m : {16, 64}) {
    for (double n : {1024, 4096}) {
      for (double k : {1024, 4096}) AddGemm(m, n, k);
    }
  }
  for (double n : {64, 768, 1536, 2304, 3072, 5120, 6144, 10240, 32000}) {
    AddGemm(2048, n, 2048);
  }
  for (double size : {64, 256, 512, 1024, 2048, 4096, 8192, 16384}) {
    AddGemm(size, size, size);
  }
}

void Planner::AddTransfers() {
  Workload empty;
  empty.kind = Kind::kEmptyKernel;
  empty.key = "empty kernel";
  Add(std::move(empty));
  for (int mebibytes = 1; mebibytes <= 1024; mebibytes *= 2) {
    Workload copy;
    copy.kind = Kind::kCopy;
    copy.key = absl::StrCat("copy of ", mebibytes, " MiB");
    copy.bytes = mebibytes * kMebibyte;
    Add(std::move(copy));
  }
  if (options_.num_partitions > 1) return;
  // Around the protocol switches of NCCL (docs/calibrate-a-gpu.md).
  for (double kibibytes :
       {1,   4,   8,   16,   24,   32,   48,   64,    96,    128,   192,
        256, 384, 512, 1024, 2048, 4096, 8192, 16384, 65536, 262144}) {
    Workload self;
    self.kind = Kind::kSelfSend;
    self.key = absl::StrCat("self-send of ", kibibytes, " KiB");
    self.bytes = 1024 * kibibytes;
    Add(std::move(self));
  }
}

// The largest GEMMs of a block, overlapped with data movement.
void Planner::AddOverlaps() {
  std::vector<Workload> gemms;
  for (const Workload& workload : plan_.workloads) {
    if (workload.kind == Kind::kOp &&
        workload.program == plan_.stages[0].program &&
        workload.pass == ProgramPass::kForward &&
        OpOf(workload).kind == OpKind::kGemm) {
      gemms.push_back(workload);
    }
  }
  std::stable_sort(
      gemms.begin(), gemms.end(), [](const Workload& a, const Workload& b) {
        const StageOp& x = OpOf(a);
        const StageOp& y = OpOf(b);
        return x.rows * x.columns * x.inner > y.rows * y.columns * y.inner;
      });
  gemms.resize(std::min<size_t>(gemms.size(), 3));
  gemms.push_back(plan_.reference);
  for (const Workload& gemm : gemms) {
    Workload overlapped = gemm;
    overlapped.kind = Kind::kOpWithCopies;
    overlapped.bytes = 256 * kMebibyte;
    overlapped.key = absl::StrCat(gemm.key, " | copies of 256 MiB");
    plan_.overlaps.push_back({gemm.key, overlapped.key, false});
    Add(overlapped);
    for (int ctas : {4, 16}) {
      overlapped.kind = Kind::kOpWithCollectives;
      overlapped.bytes = 64 * kMebibyte;
      overlapped.max_ctas = ctas;
      overlapped.key = absl::StrCat(gemm.key, " | self-sends of 64 MiB with ",
                                    ctas, " CTAs");
      plan_.overlaps.push_back({gemm.key, overlapped.key, true});
      Add(overlapped);
    }
  }
}

absl::StatusOr<MeasuringPlan> Planner::Make() {
  if (!model_.has_transformer()) {
    return absl::InvalidArgumentError(
        absl::StrCat(model_.name(),
                     ": consists of measured layers, expected a transformer"));
  }
  RETURN_IF_ERROR(AddStages());
  const auto reference = GemmProgram(kReferenceSize, kReferenceSize,
                                     kReferenceSize, options_.format);
  plan_.reference = {Kind::kOp, OpKey(*reference, reference->passes[0][0]),
                     reference, ProgramPass::kForward,
                     0,         0,
                     0};
  if (options_.num_partitions == 1) {
    const auto large = GemmProgram(kSustainedSize, kSustainedSize,
                                   kSustainedSize, options_.format);
    plan_.sustained.key =
        absl::StrCat("sustained ", OpKey(*large, large->passes[0][0]));
    plan_.sustained.program = large;
  }
  AddTransfers();
  for (const PlannedStage& stage : plan_.stages) AddOps(stage);
  AddAttention();
  AddGemms();
  if (options_.num_partitions == 1) AddOverlaps();
  for (size_t i = 0; i < plan_.stages.size(); ++i) {
    AddPasses(static_cast<int>(i));
    AddMemory(static_cast<int>(i));
  }
  return std::move(plan_);
}

}  // namespace

absl::StatusOr<MeasuringPlan> MakePlan(const Model& model,
                                       const PlanOptions& options) {
  return Planner(model, options).Make();
}

}  // namespace weir::calibrate
