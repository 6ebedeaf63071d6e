/** @file
 *  Training: losses, schedules of learning rates, optimisers, clipping and scaling of gradients,
 *  averages of parameters, and their initial values. All of them are ops of a graph, made by the
 *  builder functions of the other headers alone; kiln_graph_gradient() makes the gradients.
 *
 *  A training has two graphs. The *initial graph* has as results all that a step changes: the
 *  model's parameters, the optimiser's state, and others. The *step's graph* begins with
 *  parameters like them (kiln_train_parameters()), and its first results are their next values, in
 *  the same order, which take the memory of the last ones (kiln_compile_options::aliases). What is
 *  saved, and loaded, is the arguments of a step, by their names.
 *
 *  For all of these functions:
 *  - a mistake is the graph's error, as for builder functions: functions that return a value return
 *    0 then, others the error. A graph is built by one thread at a time;
 *  - parameters and gradients are floats, a gradient of the sizes of its parameter. Floats of 32
 * and 64 bits are computed in their own type, narrower ones in f32; below, this is the *type of the
 *    computation*. States have it, too;
 *  - an output list may be the same array as an input list, and holds nothing of use after an
 *    error;
 *  - a `step` is a scalar, an integer or a float: the number of updates so far, which is the first
 *    value of an optimiser's state (kiln_train_state()). */
#ifndef KILN_TRAIN_H_
#define KILN_TRAIN_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/error.h"
#include "kiln/export.h"
#include "kiln/graph.h"
#include "kiln/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the losses of examples become one. \since 0.1 */
typedef int32_t kiln_reduction;
/** @name Reductions of losses */
/** @{ */
#define KILN_REDUCTION_MEAN 1 /**< their mean, a scalar */
#define KILN_REDUCTION_SUM 2  /**< their sum, a scalar */
#define KILN_REDUCTION_NONE 3 /**< all of them */
/** @} */

/** @name Losses
 *  Results have the type of the computation of the first operand. */
/** @{ */
/** The cross-entropy of softmax(logits) and labels, log(sum(exp(x - max(x)))) - (x[label] -
 * max(x)), as torch.nn.functional.cross_entropy() and
 *  optax.softmax_cross_entropy_with_integer_labels(). With smoothing s the labels' distribution is
 *  1 - s at the label plus s / C everywhere (Szegedy et al., arXiv:1512.00567).
 *  @param logits floats [..., C]: a number for each class
 *  @param labels integers [...], the classes from 0 to C - 1. An example with a negative label is
 *         left out: its loss is 0, and the mean counts the others (NaN where there is none). One of
 *         C or more gives NaN
 *  @param label_smoothing from 0, for none, to 1
 *  @param reduction a ::kiln_reduction of the losses [...] \since 0.1 */
KILN_API kiln_value kiln_train_softmax_cross_entropy(kiln_graph* graph, kiln_value logits,
                                                     kiln_value labels, double label_smoothing,
                                                     kiln_reduction reduction);
/** The cross-entropy of logistic(logits) and labels, max(x, 0) - x * label + log1p(exp(-|x|)), of
 *  each element, as torch.nn.functional.binary_cross_entropy_with_logits() and
 *  optax.sigmoid_binary_cross_entropy().
 *  @param logits floats
 *  @param labels floats of the same sizes, from 0 to 1
 *  @param reduction a ::kiln_reduction of all elements \since 0.1 */
KILN_API kiln_value kiln_train_sigmoid_cross_entropy(kiln_graph* graph, kiln_value logits,
                                                     kiln_value labels, kiln_reduction reduction);
/** The square of the difference of each element, as torch.nn.functional.mse_loss().
 *  @param predictions floats
 *  @param targets floats of the same sizes
 *  @param reduction a ::kiln_reduction of all elements \since 0.1 */
KILN_API kiln_value kiln_train_squared_error(kiln_graph* graph, kiln_value predictions,
                                             kiln_value targets, kiln_reduction reduction);
/** Huber's loss of each element, as torch.nn.functional.huber_loss() and optax.huber_loss(): of a
 *  difference d, d^2 / 2 up to |d| = delta, and delta * (|d| - delta / 2) beyond.
 *  @param predictions floats
 *  @param targets floats of the same sizes
 *  @param delta above 0
 *  @param reduction a ::kiln_reduction of all elements \since 0.1 */
KILN_API kiln_value kiln_train_huber(kiln_graph* graph, kiln_value predictions, kiln_value targets,
                                     double delta, kiln_reduction reduction);
/** @} */

/** How a schedule goes on after its warm-up. \since 0.1 */
typedef int32_t kiln_schedule;
/** @name Schedules
 *  With u = (step - warmup_steps) / (steps - warmup_steps), from 0 to 1. */
/** @{ */
#define KILN_SCHEDULE_CONSTANT 0 /**< peak */
#define KILN_SCHEDULE_LINEAR 1   /**< peak + (end - peak) * u */
#define KILN_SCHEDULE_COSINE 2   /**< end + (peak - end) * (1 + cos(pi * u)) / 2 */
/** @} */

/** The options of kiln_train_schedule(). Members that are 0 are 0. \since 0.1 */
typedef struct kiln_schedule_options {
  size_t struct_size;   /**< set by kiln_schedule_options_init() */
  kiln_schedule kind;   /**< how it goes on after the warm-up */
  int32_t reserved;     /**< must be 0 */
  double start;         /**< the value at step 0, where there is a warm-up */
  double peak;          /**< the value after the warm-up */
  double end;           /**< the value from step `steps` on; ignored by a constant schedule */
  int64_t warmup_steps; /**< steps of the warm-up, linear from start to peak; 0: none */
  int64_t steps;        /**< all steps, with the warm-up's: more than these; ignored by a constant
                             schedule */
} kiln_schedule_options;

/** Makes default ::kiln_schedule_options of a variable. */
#define KILN_SCHEDULE_OPTIONS_INIT \
  { sizeof(kiln_schedule_options), KILN_SCHEDULE_CONSTANT, 0, 0, 0, 0, 0, 0 }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_schedule_options). NULL, or a
 *  size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_schedule_options_init(kiln_schedule_options* options, size_t size);

/** A learning rate, or another number, that depends on the step, as
 *  optax.warmup_cosine_decay_schedule() and optax.linear_schedule().
 *  @param options not NULL
 *  @param step a scalar; f32 is exact up to 2^24 steps
 *  @return a scalar of f32, or of f64 for a step of f64 \since 0.1 */
KILN_API kiln_value kiln_train_schedule(kiln_graph* graph, const kiln_schedule_options* options,
                                        kiln_value step);

/** An optimiser. \since 0.1 */
typedef int32_t kiln_optimizer;
/** @name Optimisers
 *  With r for the learning rate, g for the gradient, p for the parameter, t for the number of the
 *  update, from 1, and w for the weight decay. State is 0 at first. A weight decay is added to the
 *  gradient (g + w * p) if it is *coupled*; otherwise p is multiplied by 1 - r * w. */
/** @{ */
/** Coupled; p - r * g. With a momentum: m = momentum * m + g, and p - r * m, or with nesterov
 *  p - r * (g + momentum * m); as torch.optim.SGD. */
#define KILN_OPTIMIZER_SGD 1
/** Coupled; m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g^2, and
 *  p - r * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) (Kingma and Ba,
 *  arXiv:1412.6980); as torch.optim.Adam. */
#define KILN_OPTIMIZER_ADAM 2
/** Adam with a weight decay that is not coupled (Loshchilov and Hutter, arXiv:1711.05101); as
 *  torch.optim.AdamW. */
#define KILN_OPTIMIZER_ADAMW 3
/** Coupled; s = s + g^2, and p - r * g / (sqrt(s) + epsilon) (Duchi, Hazan and Singer, 2011); as
 *  torch.optim.Adagrad. */
#define KILN_OPTIMIZER_ADAGRAD 4
/** Coupled; s = beta2 * s + (1 - beta2) * g^2, and d = g / (sqrt(s) + epsilon); centered with the
 *  mean a = beta2 * a + (1 - beta2) * g in addition, and s - a^2 in place of s. p - r * d, or with
 *  a momentum: m = momentum * m + d, and p - r * m (Hinton's lecture 6e; Graves,
 *  arXiv:1308.0850); as torch.optim.RMSprop. */
#define KILN_OPTIMIZER_RMSPROP 5
/** Not coupled; p - r * sign(beta1 * m + (1 - beta1) * g), then m = beta2 * m + (1 - beta2) * g
 *  (Chen et al., arXiv:2302.06675); as optax.lion(). */
#define KILN_OPTIMIZER_LION 6
/** Not coupled, without momentum (Shazeer and Stern, arXiv:1804.04235); as torch.optim.Adafactor.
 *  With b = t^-0.8 the mean squares of g along each of the last two dimensions, R and C, become
 *  R + b * (mean(g^2) - R), and likewise C; v = R * C / max(mean(R), e) for the type's epsilon e,
 *  and u = g / sqrt(max(v, e^2)). p - min(r, 1 / sqrt(t)) * max(epsilon, rms(p)) * u /
 *  max(1, rms(u) / clip_threshold), where rms is the root of the mean square. Of less than two
 *  dimensions v is the mean square itself. */
#define KILN_OPTIMIZER_ADAFACTOR 7
/** @} */

/** The options of kiln_train_state() and kiln_train_update(); the defaults of a kind are those of
 *  kiln_optimizer_options_init(), and kinds ignore what they do not name. \since 0.1 */
typedef struct kiln_optimizer_options {
  size_t struct_size;    /**< set by kiln_optimizer_options_init() */
  kiln_optimizer kind;   /**< the optimiser */
  int32_t nesterov;      /**< 1: Nesterov's momentum, of SGD; else 0 */
  double momentum;       /**< of SGD and RMSProp; 0, the default: none */
  double beta1;          /**< of Adam, AdamW and Lion: 0.9; below 1 */
  double beta2;          /**< of Adam and AdamW: 0.999; of Lion and RMSProp: 0.99; below 1 */
  double epsilon;        /**< of Adam, AdamW and RMSProp: 1e-8; of Adagrad: 1e-10; of Adafactor:
                              1e-3 */
  double weight_decay;   /**< of AdamW: 0.01; of others 0: none */
  double initial_sum;    /**< of Adagrad, the state at first: 0 */
  double clip_threshold; /**< of Adafactor: 1 */
  int32_t centered;      /**< 1: RMSProp divides by the deviation from the mean; else 0 */
  /** 1: for parameters narrower than the type of their computation the state has their values in
   *  that type, which are updated; the parameters are those, rounded. 0: the parameters are. */
  int32_t master_weights;
  const int32_t* decayed; /**< for each parameter 1 or 0: whether weight decay applies to it. NULL:
                               to all */
  size_t decayed_count;   /**< number of `decayed`: 0, or that of the parameters */
} kiln_optimizer_options;

/** Sets `size` bytes at `options` to the defaults of an optimiser; pass
 *  sizeof(kiln_optimizer_options). For an unknown kind all but the size and the kind are 0. NULL,
 * or a size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_optimizer_options_init(kiln_optimizer_options* options, size_t size,
                                          kiln_optimizer kind);

/** A number of values that is enough for the state of an optimiser of `count` parameters. */
#define KILN_OPTIMIZER_STATE_MAX(count) (1 + 4 * (count))

/** Adds the first state of an optimiser to a graph: the number of updates, a scalar s32 of 0, and
 *  for each parameter in order the arrays that its updates change. Their op names are the
 *  parameter's (kiln_graph_value_op_name(), or else kiln_graph_value_name()) with ".master",
 *  ".momentum", ".m", ".v" and the like.
 *  @param options not NULL
 *  @param parameters `count` values, the model's first parameters
 *  @param state room for `state_size` values; may be NULL with size 0: only the number is wanted
 *  @param state_size at least the number, or 0; KILN_OPTIMIZER_STATE_MAX(count) is enough
 *  @param state_count receives the number of values
 *  @return INVALID_ARGUMENT for options, for parameters that are not floats, and for too little
 *          room; the graph's error \since 0.1 */
KILN_API kiln_error* kiln_train_state(kiln_graph* graph, const kiln_optimizer_options* options,
                                      const kiln_value* parameters, size_t count, kiln_value* state,
                                      size_t state_size, size_t* state_count);

/** Adds an update of parameters to a graph.
 *  @param options those of the state
 *  @param learning_rate a scalar float, constant (kiln_op_scalar()) or not (kiln_train_schedule())
 *  @param apply a scalar pred: where it is false, parameters and state stay as they are; 0: it is
 *         true
 *  @param parameters, gradients `count` values each
 *  @param state, state_count the values of kiln_train_state()
 *  @param next_parameters receives `count` values, of the parameters' shapes
 *  @param next_state receives `state_count` values
 *  @return INVALID_ARGUMENT for options, shapes and numbers of values; the graph's error
 *          \since 0.1 */
KILN_API kiln_error* kiln_train_update(kiln_graph* graph, const kiln_optimizer_options* options,
                                       kiln_value learning_rate, kiln_value apply,
                                       const kiln_value* parameters, const kiln_value* gradients,
                                       size_t count, const kiln_value* state, size_t state_count,
                                       kiln_value* next_parameters, kiln_value* next_state);

/** Adds a parameter to the step's graph for each of some values of the initial graph, of its shape
 *  and with its op name.
 *  @param graph the step's graph
 *  @param initial the graph of the values; used by this thread, too
 *  @param values `count` values of `initial`, none of them a token
 *  @param parameters receives `count` values
 *  @return INVALID_ARGUMENT for values of another graph; the error of either graph \since 0.1 */
KILN_API kiln_error* kiln_train_parameters(kiln_graph* graph, kiln_graph* initial,
                                           const kiln_value* values, size_t count,
                                           kiln_value* parameters);

/** @name Gradients */
/** @{ */
/** The norm of all elements of all values together, the root of the sum of their squares, as
 *  optax.global_norm().
 *  @param values `count` values, floats
 *  @return a scalar of the widest type of the computations; 0 of no values is f32 \since 0.1 */
KILN_API kiln_value kiln_train_norm(kiln_graph* graph, const kiln_value* values, size_t count);

/** Multiplies all gradients by one number, so that their norm is at most `norm`, as
 *  optax.clip_by_global_norm(): norm / max(norm, kiln_train_norm()).
 *  @param norm above 0
 *  @param gradients `count` values
 *  @param clipped receives `count` values, of the gradients' shapes
 *  @param norm_before unless NULL, receives the norm of the gradients
 *  @return INVALID_ARGUMENT; the graph's error \since 0.1 */
KILN_API kiln_error* kiln_train_clip_by_norm(kiln_graph* graph, double norm,
                                             const kiln_value* gradients, size_t count,
                                             kiln_value* clipped, kiln_value* norm_before);

/** Sets elements beyond -limit and limit to these, as torch.nn.utils.clip_grad_value_(). NaN stays.
 *  @param limit not negative
 *  @param gradients `count` values
 *  @param clipped receives `count` values, of the gradients' shapes
 *  @return INVALID_ARGUMENT; the graph's error \since 0.1 */
KILN_API kiln_error* kiln_train_clip_by_value(kiln_graph* graph, double limit,
                                              const kiln_value* gradients, size_t count,
                                              kiln_value* clipped);

/** Adds the first state of a gradient accumulation: the number of gradients so far, a scalar s32,
 *  and their sum for each parameter, in the type of the computation; all 0.
 *  @param parameters `count` values
 *  @param state receives `count` + 1 values
 *  @return INVALID_ARGUMENT; the graph's error \since 0.1 */
KILN_API kiln_error* kiln_train_accumulator(kiln_graph* graph, const kiln_value* parameters,
                                            size_t count, kiln_value* state);

/** Accumulates gradients of several batches for one update: as optax.MultiSteps, but an update is
 *  made where `ready` is true, which goes to kiln_train_update() as `apply`.
 *  @param every the number of batches of an update, above 0
 *  @param include a scalar pred: where it is false, these gradients are left out; 0: it is true
 *  @param gradients `count` values
 *  @param state the `count` + 1 values of kiln_train_accumulator()
 *  @param means receives `count` values, in the type of the computation: the mean of the gradients
 *         of `every` batches, where `ready` is true
 *  @param ready receives a scalar pred
 *  @param next_state receives `count` + 1 values
 *  @return INVALID_ARGUMENT; the graph's error \since 0.1 */
KILN_API kiln_error* kiln_train_accumulate(kiln_graph* graph, int64_t every, kiln_value include,
                                           const kiln_value* gradients, size_t count,
                                           const kiln_value* state, kiln_value* means,
                                           kiln_value* ready, kiln_value* next_state);
/** @} */

/** The options of loss scaling. Members that are 0 have their defaults, those of
 *  torch.amp.GradScaler. \since 0.1 */
typedef struct kiln_loss_scale_options {
  size_t struct_size; /**< set by kiln_loss_scale_options_init() */
  double initial;     /**< the scale at first: 65536 */
  double growth;      /**< its factor after `interval` steps with finite gradients: 2 */
  double backoff;     /**< its factor after a step with others: 0.5 */
  int64_t interval;   /**< 2000 */
} kiln_loss_scale_options;

/** Makes default ::kiln_loss_scale_options of a variable. */
#define KILN_LOSS_SCALE_OPTIONS_INIT \
  { sizeof(kiln_loss_scale_options), 0, 0, 0, 0 }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_loss_scale_options). NULL, or a
 *  size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_loss_scale_options_init(kiln_loss_scale_options* options, size_t size);

/** @name Loss scaling
 *  Gradients in f16 become 0 below 6e-8. The gradient is therefore taken of the loss times a scale,
 *  the first value of the state, and divided by it; the scale grows until gradients overflow, which
 *  costs one update (Micikevicius et al., arXiv:1710.03740). */
/** @{ */
/** Adds the first state of loss scaling: the scale, a scalar f32, and the number of steps with
 *  finite gradients since it changed, a scalar s32 of 0.
 *  @param options may be NULL: the defaults
 *  @param state receives 2 values
 *  @return INVALID_ARGUMENT for options; the graph's error \since 0.1 */
KILN_API kiln_error* kiln_train_loss_scale(kiln_graph* graph,
                                           const kiln_loss_scale_options* options,
                                           kiln_value* state);

/** Divides the gradients of a scaled loss by the scale, and finds the next one.
 *  @param options may be NULL: the defaults
 *  @param state the 2 values of kiln_train_loss_scale()
 *  @param gradients `count` values
 *  @param unscaled receives `count` values, in the type of the computation
 *  @param finite receives a scalar pred: whether all gradients are finite. It goes to
 *         kiln_train_update() as `apply`
 *  @param next_state receives 2 values
 *  @return INVALID_ARGUMENT; the graph's error \since 0.1 */
KILN_API kiln_error* kiln_train_unscale(kiln_graph* graph, const kiln_loss_scale_options* options,
                                        const kiln_value* state, const kiln_value* gradients,
                                        size_t count, kiln_value* unscaled, kiln_value* finite,
                                        kiln_value* next_state);
/** @} */

/** Adds the next exponential moving averages of values, usually parameters, to a graph: decay *
 *  average + (1 - decay) * value, as torch.optim.swa_utils.get_ema_multi_avg_fn(). The first
 *  averages are the first values in the type of the computation (kiln_op_convert()).
 *  @param decay from 0 to 1
 *  @param step a scalar: the decay is at most (1 + step) / (10 + step), as
 *         tf.train.ExponentialMovingAverage's with num_updates; 0 (no value): the same at all steps
 *  @param averages, values `count` values each, of the same sizes
 *  @param next receives `count` values, of the averages' shapes
 *  @return INVALID_ARGUMENT; the graph's error \since 0.1 */
KILN_API kiln_error* kiln_train_average(kiln_graph* graph, double decay, kiln_value step,
                                        const kiln_value* averages, const kiln_value* values,
                                        size_t count, kiln_value* next);

/** A distribution of initial values. \since 0.1 */
typedef int32_t kiln_initializer;
/** @name Initialisers
 *  The fans of an array are the number of elements that go into, and out of, one: with n for the
 *  product of the other dimensions, those of a convolution's window, fan_in is the size of
 *  `in_dimension` times n, and fan_out that of `out_dimension` times n. Normal distributions of
 *  Glorot's and He's are truncated at two standard deviations and have the given variance, as
 *  JAX's. */
/** @{ */
#define KILN_INITIALIZER_ZEROS 1   /**< 0 */
#define KILN_INITIALIZER_ONES 2    /**< scale */
#define KILN_INITIALIZER_UNIFORM 3 /**< uniform, from -scale to scale */
#define KILN_INITIALIZER_NORMAL 4  /**< of mean 0 and standard deviation scale */
#define KILN_INITIALIZER_TRUNCATED_NORMAL                \
  5 /**< scale times a number of the normal distribution \
         within -2 and 2; its deviation is 0.8796 * scale */
#define KILN_INITIALIZER_GLOROT_UNIFORM                                                    \
  6                                      /**< uniform, of variance scale^2 * 2 / (fan_in + \
                                              fan_out) (Glorot and Bengio, 2010) */
#define KILN_INITIALIZER_GLOROT_NORMAL 7 /**< normal, of that variance */
#define KILN_INITIALIZER_HE_UNIFORM                                                        \
  8                                  /**< uniform, of variance scale^2 * 2 / fan_in (He et \
                                          al., arXiv:1502.01852) */
#define KILN_INITIALIZER_HE_NORMAL 9 /**< normal, of that variance */
/** Scale times a matrix of orthonormal rows, or columns if these are fewer, of all such matrices
 *  equally likely (Saxe et al., arXiv:1312.6120); `out_dimension` is one side of the matrix, all
 *  other dimensions the other. Constant sizes only. */
#define KILN_INITIALIZER_ORTHOGONAL 10
/** @} */

/** The options of kiln_train_initialize(). Members that are 0 have their defaults. \since 0.1 */
typedef struct kiln_initializer_options {
  size_t struct_size;    /**< set by kiln_initializer_options_init() */
  kiln_initializer kind; /**< the distribution; 0: KILN_INITIALIZER_ZEROS */
  int32_t reserved;      /**< must be 0 */
  int64_t seed;          /**< determines all random numbers, with the name of the array */
  double scale;          /**< 0: 1 */
  int64_t in_dimension;  /**< counted from the end, -1 is the last; 0: -2 */
  int64_t out_dimension; /**< counted from the end, another one; 0: -1. PyTorch's order of a linear
                              layer's weights is -1 and -2 */
} kiln_initializer_options;

/** Makes default ::kiln_initializer_options of a variable. */
#define KILN_INITIALIZER_OPTIONS_INIT \
  { sizeof(kiln_initializer_options), 0, 0, 0, 0, 0, 0 }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_initializer_options). NULL, or
 * a size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_initializer_options_init(kiln_initializer_options* options, size_t size);

/** The first value of a parameter. Random numbers are determined by the seed and the name: arrays
 *  of different names have independent ones. Their bits are the same on all devices (ThreeFry 2x32,
 *  Salmon et al., 2011); functions of them may be rounded otherwise.
 *  @param options may be NULL: zeros
 *  @param dtype a float type; values are computed in f32 or f64, and rounded
 *  @param dims `rank` sizes, constants or symbols; two dimensions at least where there are fans,
 *         and constant ones then
 *  @param name the value's op name (kiln_graph_set_op_name()) and with it that of its parameter in
 *         the step's graph; may be NULL with length 0 \since 0.1 */
KILN_API kiln_value kiln_train_initialize(kiln_graph* graph,
                                          const kiln_initializer_options* options, kiln_dtype dtype,
                                          const int64_t* dims, size_t rank, const char* name,
                                          size_t name_length);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KILN_TRAIN_H_ */
