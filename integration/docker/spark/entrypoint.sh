#!/bin/bash
# entrypoint.sh driver|executor …: what Spark gives the pods that it makes.
set -euo pipefail
role=$1
shift
case $role in
driver)
  exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
    --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" "$@"
  ;;
executor)
  options=()
  for name in $(compgen -v SPARK_JAVA_OPT_ | sort -t_ -k4n); do options+=("${!name}"); done
  exec java "${options[@]}" "-Xmx$SPARK_EXECUTOR_MEMORY" -cp "$SPARK_HOME/jars/*:${SPARK_CLASSPATH:-}" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
  ;;
*)
  exec "$role" "$@"
  ;;
esac
